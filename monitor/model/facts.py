"""What follows from a snapshot's readings and findings, derived once so that all front ends agree:
which run is on which GPU, what is live, starved, superseded or falling, and what a finding is about.

`join` comes before advice, which reads it; `judge` comes after, because it reads the findings.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from monitor.model import groups
from monitor.model.finding import SERIOUS, Finding
from monitor.model.gpu import Alarm, Gpu, GpuCondition, Pcie
from monitor.model.history import RunRecord
from monitor.model.host import Process
from monitor.model.policy import DEFAULT_POLICY, Policy
from monitor.model.row_facts import complete_ranks, complete_rows
from monitor.model.run import ProcessGroup, Rank, Run, RunCondition, Stuck, Trend
from monitor.model.snapshot import Snapshot
from monitor.model.wall import wall_of

LIVE, DIED = ("running", "stalled"), ("failed", "killed")
FEEDING = ("input.", "transfer.")
"""Areas of the rules about a device left without work."""
HARMLESS = frozenset(("gpu_idle", "applications_clocks_setting", "sync_boost", "display_clock_setting"))
"""Throttle reasons that only mean an idle card or a choice of its owner."""
LANE_BYTES_PER_SECOND = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
"""PCIe generation → what one lane carries each way, after line coding (PCI-SIG)."""
RATES = ("iterations_per_second", "micro_batches_per_second", "samples_per_second", "tokens_per_second")
MOST_WINDOWS = 64
"""The length of a full timeline."""
STALE_INTERVALS = 3.0
"""A snapshot is stale when the next one is this many intervals overdue …"""
STALE_LEAST_SECONDS = 2.0
"""… but never sooner than this: a busy machine may be a second late."""


def complete(snapshot: Snapshot, policy: Policy = DEFAULT_POLICY) -> Snapshot:
    """Every derived fact, for a snapshot that already has its findings."""
    return judge(join(snapshot), policy)


def join(snapshot: Snapshot) -> Snapshot:
    """Who computes where, which runs are live, and which were run again since."""
    newest, groups = _newest(snapshot.runs), _process_groups(snapshot.processes)
    runs = tuple(
        replace(
            _run_facts(run, snapshot.time, newest),
            on_gpu_uuids=_computes_on(run, snapshot.gpus),
            process_groups=groups.get(run.id, ()),
        )
        for run in snapshot.runs
    )
    owners = {process.pid: process.run for process in snapshot.processes if process.run is not None}
    gpus = tuple(_gpu_facts(gpu, runs, owners) for gpu in snapshot.gpus)
    stale = max(STALE_INTERVALS * snapshot.interval_seconds, STALE_LEAST_SECONDS)
    return replace(snapshot, runs=runs, gpus=gpus, stale_after_seconds=stale)


def judge(snapshot: Snapshot, policy: Policy = DEFAULT_POLICY) -> Snapshot:
    """Conditions of runs and GPUs, and the subject of every finding."""
    runs = tuple(_judged_run(run, snapshot.findings, policy) for run in snapshot.runs)
    by_id = {run.id: run for run in runs}
    gpus = tuple(
        replace(
            gpu,
            condition=gpu_condition(gpu, [by_id[id] for id in gpu.run_ids if id in by_id], policy),
            alarm=_alarm(gpu, snapshot.findings),
        )
        for gpu in snapshot.gpus
    )
    findings = tuple(_about(finding, snapshot, by_id) for finding in snapshot.findings)
    grouped = groups.grouped(findings, snapshot)
    wall = wall_of(gpus, runs)
    return complete_rows(
        replace(snapshot, runs=runs, gpus=gpus, findings=findings, groups=grouped, wall=wall)
    )


def complete_record(record: RunRecord, policy: Policy = DEFAULT_POLICY) -> RunRecord:
    """A past run as last seen; whether it was run again since is not checked."""
    run = record.run
    alone = {(run.name, run.user): run.started}
    joined = replace(_run_facts(run, record.updated, alone), ranks=complete_ranks(run.ranks))
    findings = tuple(_dated(finding, joined.live, joined) for finding in record.findings)
    return replace(record, run=_judged_run(joined, findings, policy), findings=findings)


def stale_age(snapshot: Snapshot, monotonic: float) -> float | None:
    """The age of a snapshot that is too old to be shown as current, else None."""
    age = monotonic - snapshot.monotonic
    return age if age > snapshot.stale_after_seconds else None


# ── Runs ─────────────────────────────────────────────────────────────────────────────────────────

Lineage = tuple[str, str | None]
"""Runs with the same name and user count as the same job, run again."""


def _newest(runs: Iterable[Run]) -> dict[Lineage, float]:
    newest: dict[Lineage, float] = {}
    for run in runs:
        newest[run.name, run.user] = max(run.started, newest.get((run.name, run.user), run.started))
    return newest


def _run_facts(run: Run, now: float, newest: dict[Lineage, float]) -> Run:
    live = run.state in LIVE
    end = run.ended if run.ended is not None else now
    return replace(
        run,
        live=live,
        superseded=not live and run.started < newest[run.name, run.user],
        current=_current(run) if live else None,
        setup_seconds=None if run.first_step_time is None else max(0.0, run.first_step_time - run.started),
        elapsed_seconds=max(0.0, end - run.started),
        training_seconds=None if run.first_step_time is None else max(0.0, end - run.first_step_time),
        mean_step_seconds=sum(phase.mean_seconds for phase in run.phases) if run.phases else None,
        ranks=tuple(map(_rank_facts, run.ranks)),
    )


def _rank_facts(rank: Rank) -> Rank:
    total = sum(phase.total_seconds for phase in rank.phases)
    return replace(rank, live=rank.state in LIVE, total_seconds=total)


def _current(run: Run) -> Stuck | None:
    inside = [
        Stuck(rank.rank, rank.live_phase, rank.live_seconds)
        for rank in run.ranks
        if rank.live_phase and rank.live_seconds is not None
    ]
    return max(inside, key=lambda one: one.seconds, default=None)


def _judged_run(run: Run, findings: tuple[Finding, ...], policy: Policy) -> Run:
    own = own_findings(run, findings)
    starving = _is_starving(run, own, policy)
    return replace(
        _standing(run),
        starving=starving,
        condition=_run_condition(run, own, starving),
        trend=_trend(run.trend_ratio, policy),
    )


def _standing(run: Run) -> Run:
    """A hung run makes no steps: its earlier speed is not its speed now."""
    ranks = tuple(rank if rank.state != "stalled" else replace(rank, **_no_rate(rank)) for rank in run.ranks)
    if run.state != "stalled":
        return replace(run, ranks=ranks)
    return replace(run, ranks=ranks, silent_windows=_silent_windows(run), **_no_rate(run))


def _no_rate(one: Run | Rank) -> dict[str, float]:
    return {name: 0.0 for name in RATES if getattr(one, name) is not None}


def _silent_windows(run: Run) -> int:
    if run.current is None or not run.timeline or run.timeline[-1].seconds <= 0:
        return 0
    return min(MOST_WINDOWS, int(run.current.seconds / run.timeline[-1].seconds))


def _is_starving(run: Run, own: tuple[Finding, ...], policy: Policy) -> bool:
    if not run.live:
        return False
    if run.starved_ratio is not None:
        return run.starved_ratio >= policy.gpu_starved
    return any(one.severity in SERIOUS and one.id.startswith(FEEDING) for one in own)


def _run_condition(run: Run, own: tuple[Finding, ...], starving: bool) -> RunCondition:
    if run.state != "running":
        return run.state
    severities = {finding.severity for finding in own}
    if starving:
        return "starved"
    if "critical" in severities:
        return "critical"
    return "warning" if "warning" in severities else "running"


def _trend(ratio: float | None, policy: Policy) -> Trend | None:
    if ratio is None:
        return None
    if ratio >= policy.trend_falling:
        return "steady"
    return "falling" if ratio >= policy.trend_collapsed else "collapsed"


# ── Processes ────────────────────────────────────────────────────────────────────────────────────


def _process_groups(processes: Iterable[Process]) -> dict[str, tuple[ProcessGroup, ...]]:
    """Run → the processes of each of its ranks by role, added up."""
    found: dict[str, dict[tuple[int | None, str], list[Process]]] = {}
    for process in processes:
        if process.run is not None:
            found.setdefault(process.run, {}).setdefault((process.rank, process.role), []).append(process)
    return {
        run: tuple(_group(rank, role, members) for (rank, role), members in groups.items())
        for run, groups in found.items()
    }


def _group(rank: int | None, role: str, members: list[Process]) -> ProcessGroup:
    return ProcessGroup(
        role=role,
        rank=rank,
        processes=len(members),
        cpu_ratio=_total([one.cpu_ratio for one in members]),
        rss_bytes=_total([one.rss_bytes for one in members]),
        threads=_total([one.threads for one in members]),
        read_bytes_per_second=_total([one.read_bytes_per_second for one in members]),
        write_bytes_per_second=_total([one.write_bytes_per_second for one in members]),
    )


Figure = TypeVar("Figure", int, float)


def _total(figures: list[Figure | None]) -> Figure | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None


# ── GPUs ─────────────────────────────────────────────────────────────────────────────────────────


def _computes_on(run: Run, gpus: Iterable[Gpu]) -> tuple[str, ...]:
    """The driver may list a run's processes on a GPU that the run itself does not name."""
    if run.state not in LIVE:
        return ()
    pids = set(run.pids)
    listed = (gpu.uuid for gpu in gpus if any(process.pid in pids for process in gpu.processes))
    return tuple(dict.fromkeys((*run.gpu_uuids, *listed)))


def _gpu_facts(gpu: Gpu, runs: tuple[Run, ...], owners: dict[int, str]) -> Gpu:
    here = [run for run in runs if gpu.uuid in run.on_gpu_uuids]
    return replace(
        gpu,
        run_ids=tuple(run.id for run in here),
        run_memory_bytes=_memory_by_run(gpu, owners),
        throttled_by=tuple(name for name, on in (gpu.throttle or {}).items() if on and name not in HARMLESS),
        memory_used_ratio=_ratio(gpu.memory_used_bytes, gpu.memory_total_bytes),
        pcie=_link(gpu.pcie),
    )


def _link(pcie: Pcie) -> Pcie:
    lane = LANE_BYTES_PER_SECOND.get(pcie.generation or 0)
    limit = None if lane is None or pcie.width is None else lane * pcie.width
    return replace(
        pcie,
        limit_bytes_per_second=limit,
        transmit_ratio=_ratio(pcie.transmit_bytes_per_second, limit),
        receive_ratio=_ratio(pcie.receive_bytes_per_second, limit),
    )


def _memory_by_run(gpu: Gpu, owners: dict[int, str]) -> dict[str, int]:
    held: dict[str, int] = {}
    for process in gpu.processes:
        run = owners.get(process.pid)
        if run is not None and process.memory_bytes is not None:
            held[run] = held.get(run, 0) + process.memory_bytes
    return held


def _alarm(gpu: Gpu, findings: Iterable[Finding]) -> Alarm | None:
    """Findings arrive ranked: the first match is the most important."""
    for one in findings:
        if one.severity in SERIOUS and (one.gpu == gpu.uuid or one.run in gpu.run_ids):
            return Alarm(one.id, one.severity)
    return None


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def gpu_condition(gpu: Gpu, runs: list[Run], policy: Policy) -> GpuCondition:
    """One word for a GPU, the worst thing first. A busy GPU is good news."""
    if gpu.state != "ok":
        return gpu.state
    use = gpu.utilization_ratio
    if any(run.state == "stalled" for run in runs):
        return "stalled"
    if any(run.starving for run in runs) and (use or 0.0) < policy.gpu_busy_low:
        return "starved"
    if gpu.throttled_by:
        return "throttled"
    if use is None:
        return "mig" if gpu.mig_enabled else "unknown"
    if use >= policy.gpu_busy_low:
        return "busy"
    if runs and not gpu.mig_enabled:
        return "part_busy"
    return "idle" if use < policy.gpu_idle else "in_use"


# ── Findings ─────────────────────────────────────────────────────────────────────────────────────


def own_findings(run: Run, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those about the run itself."""
    return tuple(finding for finding in findings if finding.run == run.id)


def findings_of(run: Run, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those about the run and those about the GPUs it is on, in their given order."""
    return tuple(
        finding
        for finding in findings
        if finding.run == run.id or (finding.run is None and finding.gpu in run.gpu_uuids)
    )


def findings_by_run(runs: Iterable[Run], findings: Iterable[Finding]) -> dict[str, tuple[Finding, ...]]:
    """`findings_of` each run, in one pass."""
    found: dict[str, list[Finding]] = {run.id: [] for run in runs}
    on_gpu: dict[str | None, list[str]] = {}
    for run in runs:
        for uuid in run.gpu_uuids:
            on_gpu.setdefault(uuid, []).append(run.id)
    for finding in findings:
        for id in on_gpu.get(finding.gpu, ()) if finding.run is None else (finding.run,):
            if id in found:
                found[id].append(finding)
    return {id: tuple(own) for id, own in found.items()}


def promises(finding: Finding, policy: Policy = DEFAULT_POLICY) -> bool:
    """Whether its predicted gain, at best, is worth a reader's time."""
    return finding.speedup is not None and finding.speedup.high >= policy.hint_gain


def _about(finding: Finding, snapshot: Snapshot, runs: dict[str, Run]) -> Finding:
    run = runs.get(finding.run or "")
    live = finding.run is None or (run is not None and run.live)
    dated = _dated(finding, live, run)
    return replace(
        dated,
        subject=_subject(finding, run, snapshot),
        superseded=run is not None and run.superseded,
    )


def _dated(finding: Finding, live: bool, run: Run | None) -> Finding:
    """Whether it is about something that still goes on, and whether it is news."""
    died = run is not None and run.state in DIED and finding.severity == "critical"
    return replace(finding, live=live, newsworthy=live or died)


def _subject(finding: Finding, run: Run | None, snapshot: Snapshot) -> str:
    if finding.run is not None:
        name = run.name if run is not None else finding.run
        return name if finding.rank is None else f"{name} rank {finding.rank}"
    gpu = next((gpu for gpu in snapshot.gpus if gpu.uuid == finding.gpu), None)
    return snapshot.host.hostname if gpu is None else f"GPU {gpu.index}"
