"""The words and figures GPU views share."""

from __future__ import annotations

from monitor.snapshot import Gpu, Snapshot
from monitor.tui import format as show
from monitor.tui.frame import HostFrame
from monitor.tui.text import Span
from monitor.tui.views.marks import Mark, runs_on
from monitor.tui.widgets.graph import history

LANES = 1.0e9
"""One PCIe lane's figure below is in GB/s."""


def state_words(gpu: Gpu, mark: Mark) -> str:
    return f"{mark.word} {show.age(gpu.age_seconds)}" if gpu.state != "ok" else mark.word


def memory_words(gpu: Gpu) -> str:
    return show.of(gpu.memory_used_bytes, gpu.memory_total_bytes)


def memory_ratio(gpu: Gpu) -> float | None:
    if gpu.memory_used_bytes is None or not gpu.memory_total_bytes:
        return None
    return gpu.memory_used_bytes / gpu.memory_total_bytes


def run_words(gpu: Gpu, snapshot: Snapshot) -> str:
    """The runs on a GPU, each with the rank it has there."""
    out = []
    for run in runs_on(gpu, snapshot):
        ranks = [str(rank.rank) for rank in run.ranks if rank.gpu_uuid == gpu.uuid]
        out.append(f"{run.name} r{','.join(ranks)}" if run.world_size > 1 and ranks else run.name)
    return ", ".join(out)


def pcie_limit(gpu: Gpu) -> float | None:
    """Bytes per second the link can carry each way, by its generation and width."""
    per_lane = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
    lane = per_lane.get(gpu.pcie.generation or 0)
    return None if lane is None or gpu.pcie.width is None else lane * gpu.pcie.width * LANES


def traffic(down: float | None, up: float | None, limit: float | None) -> str:
    """Both directions as a share of the link when it is known, else in bytes."""
    if down is None and up is None:
        return show.ABSENT
    if limit:
        return f"{_part(down, limit)} {_part(up, limit)}"
    return f"{show.number(down, 2)} {show.number(up, 2)}"


def _part(value: float | None, limit: float) -> str:
    return show.ABSENT if value is None else f"{value / limit * 100:.0f}%"


def trail(host: HostFrame, gpu: Gpu, width: int, role: str) -> list[Span]:
    """The GPU's use over the last minutes; the newest cell is a span of its own, as it changes alone."""
    text = history([reading.use for reading in host.recent(gpu.uuid, 2 * width)], width, half=half(host))[0]
    return [Span(text[:-1], role), Span(text[-1:], role)]


def half(host: HostFrame) -> bool:
    """True on every second tick: see `history`."""
    return host.snapshot is not None and host.snapshot.seq % 2 == 1
