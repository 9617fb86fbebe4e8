"""Run families: who runs where (for joins), how a run does as a whole, and its process tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from monitor.snapshot import Process, Run
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
    """Live runs only: a GPU is no longer the run's when the run has ended. Named by the run itself,
    or by the driver, which lists the run's processes on the GPU."""
    for run in scene.runs:
        if run.state in ("running", "stalled"):
            for uuid in dict.fromkeys((*run.gpu_uuids, *_seen_on(run, scene))):
                yield (uuid, scene.gpu_index.get(uuid, ""), run.id), 1.0


def _seen_on(run: Run, scene: Scene) -> Iterable[str]:
    for gpu in scene.snapshot.gpus:
        if any(process.pid in run.pids for process in gpu.processes):
            yield gpu.uuid


def _gpu_memory(scene: Scene) -> Iterable[Sample]:
    """Device memory of a run's processes, per GPU, joined by pid."""
    shown = {run.id for run in scene.runs}
    owner = {process.pid: process.run for process in scene.snapshot.processes if process.run in shown}
    for gpu in scene.snapshot.gpus if owner else ():
        sums: dict[str, int] = {}
        for process in gpu.processes if gpu.state == "ok" else ():
            run = owner.get(process.pid)
            if run is not None and process.memory_bytes is not None:
                sums[run] = sums.get(run, 0) + process.memory_bytes
        for run, total in sums.items():
            yield (gpu.uuid, str(gpu.index), run), total


def _shares(scene: Scene) -> Iterable[Sample]:
    for run in scene.runs:
        for phase in run.phases:
            yield (run.id, phase.name), phase.share


def _percentiles(scene: Scene) -> Iterable[Sample]:
    for run in scene.runs:
        yield (run.id, "50"), run.step.p50
        yield (run.id, "95"), run.step.p95
        yield (run.id, "99"), run.step.p99


def _tree(name: str, help: str, value: Callable[[Process], float | None]) -> Family:
    """Sum over the trainer processes, and over their workers, of each rank."""

    def read(scene: Scene) -> Iterable[Sample]:
        shown = {run.id for run in scene.runs}
        sums: dict[tuple[str, ...], float] = {}
        for process in scene.snapshot.processes:
            figure = value(process) if process.run in shown else None
            if figure is not None:
                key = (process.run or "", "" if process.rank is None else str(process.rank), process.role)
                sums[key] = sums.get(key, 0) + figure
        return sums.items()

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
    _tree("processes", "Processes of a rank by role.", lambda p: 1.0),
    _tree("cpu_cores", "CPU cores the processes of a rank use.", lambda p: p.cpu_ratio),
    _tree("resident_memory_bytes", "Resident memory of the processes of a rank.", lambda p: p.rss_bytes),
    _tree("threads", "Threads of the processes of a rank.", lambda p: p.threads),
    _tree("read_bytes_per_second", "Bytes the processes of a rank read from storage.", lambda p: p.read_bytes_per_second),
    _tree("write_bytes_per_second", "Bytes the processes of a rank write to storage.", lambda p: p.write_bytes_per_second),
)  # fmt: skip
