"""Runs the rules over a snapshot and decides what is shown: suppression, ranking, hysteresis.

Rules are pure; what has to be remembered between ticks (since when, how often in a row, a bounded
history of each run) is here and nowhere else.
"""

from __future__ import annotations

import fnmatch
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from monitor.advice.context import MachineContext, Point, RunContext
from monitor.advice.finding import make
from monitor.advice.policy import DEFAULT_POLICY, Policy
from monitor.advice.rule import Advice, Rule, all_rules
from monitor.advice.whatif import Change
from monitor.snapshot import Finding, Run, Snapshot

HISTORY = 240
SEVERITY_ORDER = {"critical": 0, "warning": 1, "healthy": 2, "hint": 3}

Key = tuple[str, str | None, int | None, str | None]


@dataclass(slots=True)
class Held:
    """A finding's memory: how long it has been there, and how long it has been gone."""

    finding: Finding
    since: float
    seen: int = 1
    missed: int = 0
    shown: bool = False


@dataclass(slots=True)
class Judged:
    """A finding with what the engine needs to rank it."""

    finding: Finding
    rule: Rule
    change: Change | None


@dataclass(slots=True)
class Remembered:
    """What the engine keeps of one run."""

    points: deque[Point] = field(default_factory=lambda: deque(maxlen=HISTORY))
    mark: tuple[object, ...] = ()
    findings: list[Finding] = field(default_factory=list)
    changes: dict[str, Change] = field(default_factory=dict)


class Engine:
    """Keeps hysteresis and history between calls; `evaluate` is cheap when nothing moved."""

    def __init__(self, policy: Policy = DEFAULT_POLICY) -> None:
        self.policy = policy
        self._held: dict[Key, Held] = {}
        self._runs: dict[str, Remembered] = {}
        self._idle: dict[str, float] = {}

    def evaluate(self, snapshot: Snapshot) -> tuple[Finding, ...]:
        """What is to be shown now, ranked. Findings of ended runs need no confirmation."""
        self._forget(snapshot)
        self._follow_idle(snapshot)
        machine = self._machine(snapshot)
        found = list(machine)
        for run in snapshot.runs:
            found += self._run(snapshot, run, [one for one in machine if one.gpu in run.gpu_uuids])
        final = {run.id for run in snapshot.runs if run.state not in ("running", "stalled")}
        return rank_all(self._hold(found, snapshot.time, final))

    def changes(self, run: str) -> dict[str, Change]:
        """Finding id → its remedy in the step model, for combined predictions."""
        return self._runs[run].changes if run in self._runs else {}

    def _forget(self, snapshot: Snapshot) -> None:
        present = {run.id for run in snapshot.runs}
        self._runs = {id: kept for id, kept in self._runs.items() if id in present}
        gone = [key for key in self._held if key[1] is not None and key[1] not in present]
        for key in gone:
            del self._held[key]

    def _follow_idle(self, snapshot: Snapshot) -> None:
        """Since when each GPU that somebody holds does nothing."""
        for gpu in snapshot.gpus:
            held = bool(gpu.processes)
            if held and gpu.utilization_ratio is not None and gpu.utilization_ratio < 0.02:
                self._idle.setdefault(gpu.uuid, snapshot.time)
            else:
                self._idle.pop(gpu.uuid, None)

    def _machine(self, snapshot: Snapshot) -> list[Finding]:
        context = MachineContext(snapshot, self.policy, dict(self._idle))
        found = []
        for rule in all_rules():
            if rule.scope == "machine":
                found += [make(rule, advice, self.policy, None, None) for advice in rule.check(context)]
        return [finding for finding in found if finding is not None]

    def _run(self, snapshot: Snapshot, run: Run, beside: list[Finding]) -> list[Finding]:
        """Findings of one run; `beside` are those about the GPUs it is on."""
        kept = self._runs.setdefault(run.id, Remembered())
        mark = (run.state, run.steps, len(run.config), run.lost)
        if mark == kept.mark and run.state not in ("running", "stalled"):
            return kept.findings
        _remember(kept, snapshot, run)
        kept.mark = mark
        judged = judge(RunContext(snapshot, run, self.policy, tuple(kept.points)), beside)
        kept.findings = [one.finding for one in judged]
        kept.changes = {one.finding.id: one.change for one in judged if one.change is not None}
        return kept.findings

    def _hold(self, found: Sequence[Finding], now: float, final: set[str]) -> list[Finding]:
        """Hysteresis: shown after `confirm_ticks` in a row, gone after `clear_ticks` without."""
        present: set[Key] = set()
        for finding in found:
            key = (finding.id, finding.run, finding.rank, finding.gpu)
            present.add(key)
            held = self._held.get(key)
            if held is None:
                held = self._held[key] = Held(finding, now)
            else:
                held.finding, held.seen, held.missed = finding, held.seen + 1, 0
            at_once = finding.run in final or finding.severity == "critical"
            held.shown = held.shown or at_once or held.seen >= self.policy.confirm_ticks
        for key in [key for key in self._held if key not in present]:
            self._miss(key, final)
        return [
            msgspec.structs.replace(held.finding, since=held.since)
            for held in self._held.values()
            if held.shown
        ]

    def _miss(self, key: Key, final: set[str]) -> None:
        held = self._held[key]
        held.missed += 1
        held.seen = 0
        if not held.shown or held.missed >= self.policy.clear_ticks or key[1] in final:
            del self._held[key]


def judge(context: RunContext, beside: Sequence[Finding] = ()) -> list[Judged]:
    """All findings of one run: fired, suppressed where redundant, closed with a healthy word."""
    judged = []
    for rule in all_rules():
        if rule.scope == "run" and (not rule.steps or context.reliable):
            advice = rule.check(context)
            if advice is not None:
                judged += _judged(context, rule, advice)
    judged = suppress(judged)
    for rule in all_rules():
        if rule.scope == "closing" and context.reliable:
            advice = rule.check(context, [*beside, *(one.finding for one in judged)])
            if advice is not None:
                judged += _judged(context, rule, advice)
    return judged


def _judged(context: RunContext, rule: Rule, advice: Advice) -> list[Judged]:
    model = context.model if advice.what is not None else None
    finding = make(rule, advice, context.policy, model, context.run.id)
    return [] if finding is None else [Judged(finding, rule, advice.what)]


def suppress(judged: list[Judged]) -> list[Judged]:
    """Without those a more specific cause explains; a hint never silences a warning."""
    result = []
    for one in judged:
        silenced = any(
            _covers(other.rule.suppresses, one.finding.id)
            and other.finding.id != one.finding.id
            and SEVERITY_ORDER[other.finding.severity] <= SEVERITY_ORDER[one.finding.severity]
            for other in judged
        )
        if not silenced:
            result.append(one)
    return result


def _covers(patterns: Iterable[str], id: str) -> bool:
    return any(fnmatch.fnmatchcase(id, pattern) for pattern in patterns)


def rank_all(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Most severe first, then by what the remedy is likely to gain, then by specificity."""
    bonus = {rule.id: rule.rank_bonus for rule in all_rules()}

    def weight(finding: Finding) -> tuple[int, float, str]:
        special = bonus.get(finding.id, 0.0)
        gain = finding.speedup.likely - 1.0 if finding.speedup else special
        return (SEVERITY_ORDER[finding.severity], -gain * (1.0 + special), finding.id)

    return tuple(sorted(findings, key=weight))


def _remember(kept: Remembered, snapshot: Snapshot, run: Run) -> None:
    """One more point of the run's past."""
    context = RunContext(snapshot, run, DEFAULT_POLICY)
    gpu = context.gpus[0] if context.gpus else None
    throttle = gpu.throttle if gpu is not None and gpu.throttle else {}
    rss = context.scalar("proc.rss_bytes")  # workers touch pages they share; that is no growth
    device = context.scalar("cuda.allocated_bytes")
    memory, cpu = snapshot.host.memory, snapshot.host.cpu
    own = [process.cpu_ratio for process in context.processes if process.cpu_ratio is not None]
    busy = cpu.utilization_ratio * cpu.cores if cpu and cpu.utilization_ratio is not None else None
    live = run.state == "running" and bool(own) and busy is not None
    kept.points.append(
        Point(
            time=snapshot.time,
            steps=run.steps,
            rss_bytes=int(rss) if rss else None,
            device_bytes=int(device) if device else None,
            step_p50=run.step.p50,
            sm_clock=gpu.sm_clock_hertz if gpu else None,
            throttled=frozenset(name for name, active in throttle.items() if active),
            swap_bytes_per_second=memory.swap_in_bytes_per_second if memory else None,
            other_cpu=max(0.0, busy - sum(own)) if live and busy is not None else None,
        )
    )
