"""Whose GPU it is: the processes on a GPU, each with its user, container, pod and job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from monitor.model.gpu import Gpu, GpuProcess, Holder
from monitor.model.host import Process
from monitor.model.snapshot import Snapshot

OTHERS = "others"
"""Stands in for the pid of all processes not listed one by one."""


class GpuUser(NamedTuple):
    """A process on a GPU; "" for anything unknown."""

    pid: str
    memory_bytes: int | None
    sm_ratio: float | None
    process: str = ""
    user: str = ""
    container: str = ""
    namespace: str = ""
    pod: str = ""
    slurm_job: str = ""
    run: str = ""
    mig_uuid: str = ""


def users_by_gpu(snapshot: Snapshot, most: int) -> dict[str, list[GpuUser]]:
    """GPU UUID → `users_of` it; empty when `most` is 0."""
    known = {process.pid: process for process in snapshot.processes}
    return {gpu.uuid: users_of(gpu, known, most) for gpu in snapshot.gpus} if most else {}


def users_of(gpu: Gpu, processes: Mapping[int, Process], most: int) -> list[GpuUser]:
    """The `most` with the largest memory, and the rest summed."""
    ranked = sorted(gpu.processes, key=lambda used: (-(used.memory_bytes or 0), used.pid))
    shown = [_user(used, processes.get(used.pid)) for used in ranked[:most]]
    return [*shown, *_summed(ranked[most:])]


def _user(used: GpuProcess, known: Process | None) -> GpuUser:
    bare = GpuUser(str(used.pid), used.memory_bytes, used.sm_ratio, mig_uuid=used.mig_uuid or "")
    if known is None:
        return bare
    return bare._replace(
        process=known.name or "",
        user=known.user or "",
        container=known.container_name or known.container or "",
        namespace=known.namespace or "",
        pod=known.pod or "",
        slurm_job=known.slurm_job or "",
        run=known.run or "",
    )


def _summed(rest: Sequence[GpuProcess]) -> list[GpuUser]:
    if not rest:
        return []
    memory = [used.memory_bytes for used in rest if used.memory_bytes is not None]
    busy = [used.sm_ratio for used in rest if used.sm_ratio is not None]
    return [GpuUser(OTHERS, sum(memory) if memory else None, sum(busy) if busy else None)]


def with_pod(process: Process, uses: Iterable[tuple[Gpu, GpuProcess]]) -> Process:
    """The process with its namespace and container, if only one holder of its devices can be meant: the
    kubelet knows names, the control group only that it is in a pod."""
    if process.pod is None or process.namespace is not None:
        return process
    given = {_plain(one) for gpu, used in uses for one in gpu.holders if _may_be(one, process, used)}
    if len(given) != 1:
        return process
    holder = given.pop()
    return replace(
        process,
        pod=holder.pod,
        namespace=holder.namespace,
        container_name=process.container_name or holder.container,
    )


def _may_be(holder: Holder, process: Process, used: GpuProcess) -> bool:
    """A pod known by uid may be any of them; one known by name only that one."""
    if holder.pod is None or holder.mig_uuid not in (None, used.mig_uuid):
        return False
    return process.pod == holder.pod or _is_uid(process.pod or "")


def _plain(holder: Holder) -> Holder:
    return replace(holder, mig_uuid=None, shares=1)


def _is_uid(pod: str) -> bool:
    digits = pod.replace("-", "")
    return len(digits) == 32 and all(digit in "0123456789abcdef" for digit in digits)
