"""Run families: who runs where (for joins), how a run does as a whole, and its process tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from monitor.model.run import ProcessGroup, Run
from monitor.web.families.base import Family, Kind, Sample, Scene

STATES = ("running", "stalled", "ended", "failed", "killed")
EACH = "1 per run"
INFO_LABELS = (
    "run",
    "name",
    "user",
    "hostname",
    "container",
    "pod",
    "namespace",
    "slurm_job",
    "way",
    "git_commit",
)


def _of(name: str, kind: Kind, help: str, value: Callable[[Run], float | None], cost: str = EACH) -> Family:
    def read(scene: Scene) -> Iterable[Sample]:
        return [((run.id,), value(run)) for run in scene.runs]

    return Family(f"gpumon_run_{name}", kind, help, ("run",), read, "rings of the run", cost)


def _info(scene: Scene) -> Iterable[Sample]:
    for run in scene.runs:
        texts = (
            run.name,
            run.user,
            run.hostname,
            run.container,
            run.pod,
            run.namespace,
            run.slurm_job,
            run.way,
            run.git_commit,
        )
        yield (run.id, *(text or "" for text in texts)), 1.0


def _state(scene: Scene) -> Iterable[Sample]:
    for run in scene.runs:
        for state in STATES:
            yield (run.id, state), float(run.state == state)


def _gpu_run(scene: Scene) -> Iterable[Sample]:
    for run in scene.runs:
        for uuid in run.on_gpu_uuids:
            yield (uuid, scene.gpu_index.get(uuid, ""), run.id), 1.0


def _gpu_memory(scene: Scene) -> Iterable[Sample]:
    for labels, gpu in scene.gpus:
        for run in scene.runs if gpu.run_memory_bytes else ():
            yield (*labels, run.id), gpu.run_memory_bytes.get(run.id)


def _shares(scene: Scene) -> Iterable[Sample]:
    for run in scene.runs:
        for phase in run.phases:
            yield (run.id, phase.name), phase.share


def _percentiles(scene: Scene) -> Iterable[Sample]:
    for run in scene.runs:
        yield (run.id, "50"), run.step.p50
        yield (run.id, "95"), run.step.p95
        yield (run.id, "99"), run.step.p99


def _group(name: str, help: str, value: Callable[[ProcessGroup], float | None]) -> Family:
    """The trainer processes of each rank, and their workers."""

    def read(scene: Scene) -> Iterable[Sample]:
        for run in scene.runs:
            for group in run.process_groups:
                rank = "" if group.rank is None else str(group.rank)
                yield (run.id, rank, group.role), value(group)

    labels = ("run", "rank", "role")
    return Family(
        f"gpumon_run_{name}", "gauge", help, labels, read, "/proc of the process tree", "up to 2 per rank"
    )


FAMILIES = (
    Family("gpumon_run_info", "info", "Who a run is; join by run.", INFO_LABELS, _info, "ring meta, /proc, cgroup, environment", EACH),
    Family("gpumon_run_state", "gauge", "1 for the state the run is in.", ("run", "state"), _state, "ring header, file lock", "5 per run"),
    Family("gpumon_gpu_run", "gauge", "1: the run uses the GPU now; join GPU series with runs by uuid.", ("uuid", "gpu", "run"), _gpu_run, "ring meta, NVML processes", "1 per live run and GPU"),
    Family("gpumon_gpu_run_memory_bytes", "gauge", "Device memory a run's processes hold.", ("uuid", "gpu", "run"), _gpu_memory, "NVML processes joined with the process tree", "1 per live run and GPU"),
    _of("started_timestamp_seconds", "gauge", "When the run started.", lambda r: r.started),
    _of("ended_timestamp_seconds", "gauge", "When the run ended.", lambda r: r.ended),
    _of("first_step_timestamp_seconds", "gauge", "When its first step began; before it is set-up.", lambda r: r.first_step_time),
    _of("world_size", "gauge", "Ranks the run was launched with.", lambda r: r.world_size),
    _of("batch_size", "gauge", "Samples per rank and step.", lambda r: r.batch_size),
    _of("steps_per_second", "gauge", "Steps a second over the rolling window.", lambda r: r.iterations_per_second),
    _of("samples_per_second", "gauge", "Samples a second, all ranks.", lambda r: r.samples_per_second),
    _of("tokens_per_second", "gauge", "Tokens a second, all ranks.", lambda r: r.tokens_per_second),
    Family("gpumon_run_step_percentile_seconds", "gauge", "Step time over the rolling window of steady steps.", ("run", "percentile"), _percentiles, "rings of the run", "3 per run"),
    Family("gpumon_run_phase_share_ratio", "gauge", "Share of step time by phase over the rolling window; sums to 1.", ("run", "phase"), _shares, "rings of the run", "1 per phase and run, at most 17"),
    _of("starved_ratio", "gauge", "Share of time in which the device had no work.", lambda r: r.starved_ratio),
    _of("trend_ratio", "gauge", "Throughput now over the run's best sustained throughput.", lambda r: r.trend_ratio),
    _group("processes", "Processes of a rank by role.", lambda g: float(g.processes)),
    _group("cpu_cores", "CPU cores the processes of a rank use.", lambda g: g.cpu_ratio),
    _group("resident_memory_bytes", "Resident memory of the processes of a rank.", lambda g: g.rss_bytes),
    _group("threads", "Threads of the processes of a rank.", lambda g: g.threads),
    _group("read_bytes_per_second", "Bytes the processes of a rank read from storage.", lambda g: g.read_bytes_per_second),
    _group("write_bytes_per_second", "Bytes the processes of a rank write to storage.", lambda g: g.write_bytes_per_second),
)  # fmt: skip
