"""Runs the rules over a snapshot and decides what is shown.

Rules are pure; what has to be remembered between ticks (since when, how often in a row, a bounded history of
each run) lives here and in `confirmation`, and nowhere else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from monitor.advice.conclusion import Changes, combined_of, steady_combined, uncontradicted, verdict
from monitor.advice.confirmation import Confirmation, since
from monitor.advice.context.machine import MachineContext, Point
from monitor.advice.context.run import RunContext
from monitor.advice.guard import Guard
from monitor.advice.judging import NO_ERRORS, Errors, Judged, judge_machine, judge_run
from monitor.advice.prediction.step_model import StepModel
from monitor.advice.ranking import ranked
from monitor.model import facts
from monitor.model.finding import Finding, Speedup
from monitor.model.policy import DEFAULT_POLICY, Policy
from monitor.model.run import Run
from monitor.model.snapshot import Snapshot
from monitor.model.verdict import Verdict

HISTORY = 240
"""Points kept of a run's past: four minutes at the default interval."""
YOUNG = 60
"""A run is evaluated on every tick this many times. By then its rolling figures are full and hardly change
…"""
REST_TICKS = 4
"""… so it may then rest for this many ticks. Our choice: advice is most of what a run costs the daemon."""
RUN, VERDICT = "(run)", "(verdict)"
"""Names under which failures outside the rules are counted."""


@dataclass(slots=True)
class Remembered:
    """What the engine remembers about one run."""

    points: deque[Point] = field(default_factory=lambda: deque(maxlen=HISTORY))
    mark: tuple[object, ...] = ()
    """What a finished run's findings depend on: if unchanged, it need not be judged again."""
    evaluations: int = 0
    rested: int = 0
    """Ticks since the last evaluation."""
    judged: list[Judged] = field(default_factory=list)
    model: StepModel | None = None
    combined: Speedup | None = None
    """As last shown: it changes only when the new range excludes it."""
    verdict: Verdict | None = None
    concluded_from: tuple[Finding, ...] | None = None
    """The findings that led to these: for a finished run, the same findings give the same conclusion."""


@dataclass(slots=True)
class RememberedMachine:
    """What the engine remembers about the machine: like a run, it rests once it was watched for a while."""

    mark: tuple[object, ...] = ()
    """What makes the rules look at once: a GPU's state, errors, throttling, processes and runs."""
    evaluations: int = 0
    rested: int = 0
    judged: list[Judged] = field(default_factory=list)


class Engine:
    """Keeps confirmation and history between calls; `evaluate` is cheap if nothing changed."""

    def __init__(self, policy: Policy = DEFAULT_POLICY, young: int = YOUNG) -> None:
        """`young`: evaluations of a run before it may rest."""
        self.policy = policy
        self._young = young
        self._confirmation = Confirmation(policy)
        self._runs: dict[str, Remembered] = {}
        self._machine = RememberedMachine()
        self._idle: dict[str, float] = {}
        self._guard = Guard()
        self._shown: Sequence[Judged] = ()
        self._ranked: tuple[Finding, ...] = ()
        """The findings of `_shown`, in order: most ticks show what the last one did."""
        self.errors: Mapping[str | None, Errors] = {}
        """Kind of machine → how far each rule's predictions were off there."""

    def evaluate(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with the findings to show now, and each run with its verdict."""
        found = self._judge(snapshot)
        self._confirmation.forget({run.id for run in snapshot.runs})
        over = {run.id for run in snapshot.runs if not run.live}
        resting: set[str | None] = {id for id, kept in self._runs.items() if kept.rested}
        resting -= over
        if self._machine.rested:
            resting.add(None)
        return self._conclude(snapshot, self._confirmation.update(found, snapshot.time, over, resting))

    def once(self, snapshot: Snapshot) -> Snapshot:
        """The same for a single snapshot, with no later one to confirm the findings."""
        return self._conclude(snapshot, [since(judged, snapshot.time) for judged in self._judge(snapshot)])

    def _judge(self, snapshot: Snapshot) -> list[Judged]:
        """What the rules say now; ended runs are judged only if something about them changed."""
        present = {run.id for run in snapshot.runs}
        self._runs = {id: kept for id, kept in self._runs.items() if id in present}
        self._follow_idle(snapshot)
        found = list(self._judge_machine(snapshot))
        about_gpus = [one.finding for one in found]
        for run in snapshot.runs:
            ask = partial(self._judge_run, snapshot, run, facts.findings_of(run, about_gpus))
            found += self._guard.ask(RUN, ask, [])
        return found

    def _judge_machine(self, snapshot: Snapshot) -> list[Judged]:
        kept, mark = self._machine, _mark(snapshot)
        rests = mark == kept.mark and kept.evaluations >= YOUNG and self._confirmation.settled
        if rests and kept.rested < REST_TICKS:
            kept.rested += 1
            return kept.judged
        kept.mark, kept.rested = mark, 0
        kept.evaluations += 1
        context = MachineContext(snapshot, self.policy, dict(self._idle))
        kept.judged = judge_machine(context, self._guard.ask)
        return kept.judged

    def _follow_idle(self, snapshot: Snapshot) -> None:
        """Track since when each held GPU has been idle."""
        for gpu in snapshot.gpus:
            use = gpu.utilization_ratio
            if gpu.processes and use is not None and use < self.policy.gpu_unused:
                self._idle.setdefault(gpu.uuid, snapshot.time)
            else:
                self._idle.pop(gpu.uuid, None)

    def _judge_run(self, snapshot: Snapshot, run: Run, about_gpus: Sequence[Finding]) -> list[Judged]:
        kept = self._runs.setdefault(run.id, Remembered())
        mark = (run.state, len(run.config), run.lost, 0 if run.live else run.steps)
        if mark == kept.mark and not run.live:
            kept.rested = 1
            return kept.judged
        kept.points.append(_point(RunContext(snapshot, run, self.policy)))
        if mark == kept.mark and kept.evaluations >= self._young and kept.rested < REST_TICKS:
            kept.rested += 1
            return kept.judged
        kept.mark, kept.rested = mark, 0
        kept.evaluations += 1
        context = RunContext(snapshot, run, self.policy, tuple(kept.points))
        errors = self.errors.get(run.host_kind, NO_ERRORS)
        kept.judged = judge_run(context, about_gpus, self._guard.ask, errors)
        kept.model = context.model if context.reliable else None
        return kept.judged

    def _conclude(self, snapshot: Snapshot, shown: Sequence[Judged]) -> Snapshot:
        if shown != self._shown:
            self._shown, self._ranked = shown, ranked(uncontradicted([one.finding for one in shown]))
        findings = self._ranked
        changes = {one.finding.key: one.outcomes for one in shown}
        own = facts.findings_by_run(snapshot.runs, findings)
        runs = tuple(self._concluded(run, own[run.id], changes) for run in snapshot.runs)
        return replace(snapshot, findings=findings, runs=runs, rule_errors=dict(self._guard.failures))

    def _concluded(self, run: Run, own: tuple[Finding, ...], changes: Changes) -> Run:
        return self._guard.ask(VERDICT, partial(self._conclude_run, run, own, changes), run)

    def _conclude_run(self, run: Run, own: tuple[Finding, ...], changes: Changes) -> Run:
        kept = self._runs[run.id]
        if not kept.rested or own != kept.concluded_from:
            kept.combined = steady_combined(combined_of(own, changes, kept.model), kept.combined, own)
            kept.verdict = verdict(run, own, kept.combined, self.policy)
            kept.concluded_from = own
        return replace(run, combined=kept.combined, verdict=kept.verdict)


def _mark(snapshot: Snapshot) -> tuple[object, ...]:
    return tuple(
        (gpu.uuid, gpu.state, gpu.throttled_by, gpu.errors, gpu.run_ids, [one.pid for one in gpu.processes])
        for gpu in snapshot.gpus
    )


def _point(context: RunContext) -> Point:
    """The run's current values, for effects that only show over time."""
    rss = context.scalar("proc.rss_bytes")  # workers touch shared pages; that is not growth
    device = context.scalar("cuda.allocated_bytes")
    return Point(
        steps=context.run.steps,
        rss_bytes=int(rss) if rss else None,
        device_bytes=int(device) if device else None,
        other_cpu=_other_cores(context),
        trainer_cpu=_trainer_cores(context),
        cpu_pressure=_pressure(context),
    )


def _pressure(context: RunContext) -> float | None:
    cpu = context.snapshot.host.cpu
    return cpu.pressure.some_ratio if cpu is not None and context.run.state == "running" else None


def _trainer_cores(context: RunContext) -> float | None:
    """Cores a rank's own process keeps busy once steps are made; None if unknown."""
    own = [one.cpu_ratio for one in context.processes if one.role == "trainer" and one.cpu_ratio is not None]
    return sum(own) / len(own) if own and context.run.state == "running" and context.run.steps else None


def _other_cores(context: RunContext) -> float | None:
    """Cores that processes outside the run keep busy; None if unknown."""
    cpu = context.snapshot.host.cpu
    own = [process.cpu_ratio for process in context.processes if process.cpu_ratio is not None]
    if context.run.state != "running" or not own or cpu is None or cpu.utilization_ratio is None:
        return None
    return max(0.0, cpu.utilization_ratio * cpu.cores - sum(own))
