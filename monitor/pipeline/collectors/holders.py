"""Who was assigned each GPU: pods according to the kubelet, Slurm jobs according to their files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from monitor.host.device_ids import parse_device_id
from monitor.host.job_files import JobFiles
from monitor.host.kubelet import Kubelet
from monitor.model.gpu import Gpu, Holder, MigInstance
from monitor.pipeline.draft import Draft, Setup

Claim = tuple[str, Holder]
"""A device name, and who holds it."""


class HolderCollector:
    name = "holders"

    def __init__(self, setup: Setup) -> None:
        chosen = setup.settings
        self._kubelet = Kubelet(chosen.pod_resources) if chosen.pod_resources else None
        self._files = JobFiles(chosen.gpu_jobs) if chosen.gpu_jobs else None

    def collect(self, draft: Draft) -> None:
        claims = [*self._pods(draft.now.monotonic), *self._jobs(draft.now.monotonic)]
        if claims:
            draft.gpus = tuple(replace(gpu, holders=holders_of(gpu, claims)) for gpu in draft.gpus)

    def close(self) -> None:
        if self._kubelet is not None:
            self._kubelet.close()

    def _pods(self, now: float) -> Iterator[Claim]:
        for one in self._kubelet.allotments(now) if self._kubelet else ():
            yield one.device, Holder(pod=one.pod, namespace=one.namespace, container=one.container)

    def _jobs(self, now: float) -> Iterator[Claim]:
        for device, jobs in self._files.jobs(now).items() if self._files else ():
            for job in jobs:
                yield device, Holder(slurm_job=job)


def holders_of(gpu: Gpu, claims: Iterable[Claim]) -> tuple[Holder, ...]:
    """Each holder once; several time slices of the same device become its `shares`."""
    found: Counter[Holder] = Counter()
    for device, holder in claims:
        meant = parse_device_id(device)
        part = meant.find(gpu) if meant else None
        if part is not None:
            found[replace(holder, mig_uuid=part.uuid if isinstance(part, MigInstance) else None)] += 1
    return tuple(replace(holder, shares=count) for holder, count in found.items())
