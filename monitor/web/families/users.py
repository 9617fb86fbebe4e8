"""Whose GPU it is: the processes on it, and the pods and jobs it was given to. No SDK is needed for these.

The only families with a pid: it is what `ps`, `nvidia-smi` and `kill` go by. How many a GPU shows is capped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from monitor.model.gpu_users import GpuUser
from monitor.web.families.base import Family, Sample, Scene

GPU_LABELS = ("uuid", "gpu", "mig_uuid")
USER_LABELS = (*GPU_LABELS, "pid", "process", "user", "container", "namespace", "pod", "slurm_job", "run")
COST = "1 per process on a GPU, at most 17 a GPU"


def _of(name: str, help: str, value: Callable[[GpuUser], float | None]) -> Family:
    def read(scene: Scene) -> Iterable[Sample]:
        for labels, user in scene.users:
            yield (*labels, user.mig_uuid, user.pid, *_who(user)), value(user)

    source = "NVML processes, /proc, cgroup, kubelet"
    return Family(f"gpumon_gpu_process_{name}", "gauge", help, USER_LABELS, read, source, COST)


def _who(user: GpuUser) -> tuple[str, ...]:
    owner = (user.process, user.user, user.container, user.namespace, user.pod)
    return (*owner, user.slurm_job, user.run)


def _pods(scene: Scene) -> Iterable[Sample]:
    for labels, one in scene.holders:
        if one.pod is not None:
            named = (one.namespace or "", one.pod, one.container or "")
            yield (*labels, one.mig_uuid or "", *named), one.shares


def _jobs(scene: Scene) -> Iterable[Sample]:
    for labels, one in scene.holders:
        if one.slurm_job is not None:
            yield (*labels, one.mig_uuid or "", one.slurm_job), 1.0


FAMILIES = (
    _of("memory_bytes", "Device memory a process holds; pid=\"others\" is the sum of those beyond the cap.", lambda u: u.memory_bytes),
    _of("sm_ratio", "Share of time in which kernels of a process ran; pid=\"others\" is the sum of those beyond the cap.", lambda u: u.sm_ratio),
    Family("gpumon_gpu_pod", "gauge", "Devices or time slices of the GPU or MIG instance that a container was given, used or not.", (*GPU_LABELS, "namespace", "pod", "container"), _pods, "kubelet's pod resources", "1 per container and GPU"),
    Family("gpumon_gpu_slurm_job", "gauge", "1: the GPU was given to the Slurm job, used or not.", (*GPU_LABELS, "slurm_job"), _jobs, "files of the Slurm prolog", "1 per job and GPU"),
)  # fmt: skip
