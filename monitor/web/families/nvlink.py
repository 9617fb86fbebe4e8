"""NVLink families: all links together, and, where that is asked for, every link by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from monitor.model.gpu import NvlinkLink
from monitor.web.families.base import Family, Kind, Sample, Scene
from monitor.web.families.gpu import LABELS, each, of

LINK_LABELS = (*LABELS, "link")
EACH_LINK = "1 per link and GPU, with --per-link"


def _link(name: str, kind: Kind, help: str, value: Callable[[NvlinkLink], float | None]) -> Family:
    def read(scene: Scene) -> Iterable[Sample]:
        for labels, gpu in scene.gpus if scene.limits.per_link else ():
            for link in gpu.nvlink.links:
                yield (*labels, str(link.link)), value(link)

    return Family(
        f"gpumon_gpu_nvlink_link_{name}", kind, help, LINK_LABELS, read, "NVML NVLink fields", EACH_LINK
    )


def _link_errors(scene: Scene) -> Iterable[Sample]:
    for labels, gpu in scene.gpus if scene.limits.per_link else ():
        for link in gpu.nvlink.links:
            for kind, count in link.errors.items():
                yield (*labels, str(link.link), kind), count


FAMILIES = (
    of("nvlink_links", "gauge", "NVLink links that are up.", "nvlink.links_active", "NVLink state"),
    of("nvlink_transmit_bytes_per_second", "gauge", "Bytes sent over all NVLink links.", "nvlink.transmit_bytes_per_second", "NVLink counters"),
    of("nvlink_receive_bytes_per_second", "gauge", "Bytes received over all NVLink links.", "nvlink.receive_bytes_per_second", "NVLink counters"),
    of("nvlink_transmit_bytes_total", "counter", "Bytes sent over all NVLink links since the driver was loaded.", "nvlink.transmit_bytes", "NVLink counters"),
    of("nvlink_receive_bytes_total", "counter", "Bytes received over all NVLink links since the driver was loaded.", "nvlink.receive_bytes", "NVLink counters"),
    of("nvlink_bandwidth_bytes_per_second", "gauge", "What all NVLink links could carry.", "nvlink.bandwidth_bytes_per_second", "NVLink speed"),
    each("nvlink_errors_total", "counter", "Errors on all NVLink links; replay and recovery were put right.", "kind", "nvlink.errors", dict.items, "NVLink error counters", "up to 5 per GPU"),
    _link("up", "gauge", "1: the link is up.", lambda link: link.up),
    _link("transmit_bytes_total", "counter", "Bytes sent over one link since the driver was loaded.", lambda link: link.transmit_bytes),
    _link("receive_bytes_total", "counter", "Bytes received over one link since the driver was loaded.", lambda link: link.receive_bytes),
    Family("gpumon_gpu_nvlink_link_errors_total", "counter", "Errors on one link.", (*LINK_LABELS, "kind"), _link_errors, "NVML NVLink error counters", "up to 5 per link and GPU, with --per-link"),
)  # fmt: skip
