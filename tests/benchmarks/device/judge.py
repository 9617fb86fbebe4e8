"""What gpumon said about one script against what was true."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.benchmarks.device.case import Case
from tests.benchmarks.device.measure import Run, Truth

IDLE_POINTS = 0.05
"""The reported idle share may be off by this much."""
HEALTHY_IDLE = 0.10
"""Above this idle share a script that should be healthy was not in this run: the machine was busy."""
LEAST_GAIN = 1.10
"""A gain worth naming: what a fix has to bring, and what a healthy run must not be promised."""


@dataclass(slots=True)
class Row:
    """One script: truth, what was reported, and the verdicts. None: there was nothing to judge."""

    script: str
    cause: str
    expected: list[str]
    digest: str = ""
    product: str = ""
    look: str = ""
    """`first look`, or since when gpumon's answers on this script are known."""
    skipped: str = ""
    error: str = ""
    launch_bound: bool = False
    load: float | None = None
    """Load average of the machine at the end of this script's runs."""
    idle: float | None = None
    idle_causes: dict[str, float] = field(default_factory=dict)
    step_ms: float | None = None
    fixed_step_ms: float | None = None
    gain: float | None = None
    """True gain of the fix, by wall clock, without gpumon."""
    slowdown: float | None = None
    """Seconds a step under gpumon, by those without."""
    reported_idle: float | None = None
    findings: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    title: str = ""
    promised: float | None = None
    """Likely gain of the first finding."""
    predicted: dict[str, float] | None = None
    """Range of the finding that names the cause."""
    disturbed: bool = False
    """The run was not what the script is made to be (too busy a machine)."""
    idle_right: bool | None = None
    first: bool | None = None
    top3: bool | None = None
    inside: bool | None = None
    false_alarm: bool | None = None


def judge(case: Case, watched: Run, naive: Run | None, fixed: Run | None) -> Row:
    row = Row(case.script, case.cause, list(case.expected), case.digest(), launch_bound=case.launch_bound)
    row.error = next((run.error for run in (watched, naive, fixed) if run and run.error), "")
    _note_truth(row, case, watched.truth, naive.truth if naive else None, fixed.truth if fixed else None)
    if watched.report is None:
        row.error = row.error or "gpumon gave no report"
        return row
    _note_report(row, case, watched.report)
    _judge_findings(row, case)
    row.idle_right = _idle_right(row)
    row.inside = _inside(row)
    return row


def _note_truth(row: Row, case: Case, seen: Truth | None, naive: Truth | None, fixed: Truth | None) -> None:
    if seen:
        row.idle, row.idle_causes = seen.idle_share, seen.causes
    if naive:
        row.step_ms = naive.step_seconds * 1e3
    if naive and seen:
        row.slowdown = seen.step_seconds / naive.step_seconds
    if naive and fixed:
        row.fixed_step_ms = fixed.step_seconds * 1e3
        row.gain = naive.step_seconds / fixed.step_seconds * case.work
    row.disturbed = is_disturbed(case, row)


def is_disturbed(case: Case, row: Row) -> bool:
    """Whether the run lacks what the script was made to show."""
    if row.idle is None:
        return True
    if case.healthy:
        return row.idle > HEALTHY_IDLE
    return row.idle < case.least_idle or (row.gain is not None and row.gain < LEAST_GAIN)


def _note_report(row: Row, case: Case, report: dict[str, Any]) -> None:
    findings = report["findings"]
    row.reported_idle = report.get("starved_ratio")
    row.findings = [finding["id"] for finding in findings]
    row.alarms = [finding["id"] for finding in findings if finding["severity"] in ("warning", "critical")]
    row.title = findings[0]["title"] if findings else report["verdict"]
    if findings and findings[0].get("speedup"):
        row.promised = findings[0]["speedup"]["likely"]
    naming = (finding for finding in findings if finding["id"] in case.expected and finding.get("speedup"))
    if found := next(naming, None):
        row.predicted = {key: found["speedup"][key] for key in ("low", "likely", "high")}


def _judge_findings(row: Row, case: Case) -> None:
    if not case.healthy:
        row.first = bool(set(row.findings[:1]) & set(case.expected))
        row.top3 = bool(set(row.findings[:3]) & set(case.expected))
    elif not row.disturbed:
        row.false_alarm = bool(row.alarms) or (row.promised or 1.0) >= LEAST_GAIN


def _idle_right(row: Row) -> bool | None:
    """Within the points allowed. Launch-bound: the cause is named first, and what is reported is not more
    than the truth (it may be less: a lower bound)."""
    if row.idle is None:
        return None
    if row.reported_idle is None:
        return False
    over = row.reported_idle - row.idle
    if row.launch_bound:
        return bool(row.first) and over <= IDLE_POINTS
    return abs(over) <= IDLE_POINTS


def _inside(row: Row) -> bool | None:
    """As on the CPU's corpus: the range with three percent on either side for the measurement itself."""
    if row.predicted is None or row.gain is None:
        return None
    return row.predicted["low"] * 0.97 <= row.gain <= row.predicted["high"] * 1.03
