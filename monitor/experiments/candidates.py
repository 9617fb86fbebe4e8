"""What is worth trying after a first look: remedies that are knobs, then knobs of what takes time."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.advice.evidence.loading import worker_knobs
from monitor.comparison.settings import setting
from monitor.experiments.arm import Arm
from monitor.model.finding import Finding
from monitor.model.run import Run

SHARE = 0.08
"""A choice: a part of the step below this is not worth an experiment of its own."""
_LEFTOVERS = {"anomaly": "off", "gc.collect": "off"}
"""Of the hunt for a bug, or for memory: they cost much, and are forgotten easily."""


def from_findings(findings: tuple[Finding, ...]) -> list[Arm]:
    """Remedies that are knobs, the most promising first."""
    return [Arm(finding.remedy.knobs, finding) for finding in findings if finding.remedy.knobs]


def by_share(run: Run, cores: int) -> list[Arm]:
    """Nothing was promised for these; the part of the step they concern is large enough to try."""
    shares = {phase.name: phase.share for phase in run.phases}
    return [Arm(settings) for phase, settings in _general(run, cores) if shares.get(phase, 0.0) >= SHARE]


def _general(run: Run, cores: int) -> Iterator[tuple[str, dict[str, str]]]:
    workers = setting(run, "loader", "num_workers")
    if isinstance(workers, int) and not setting(run, "loader", "iterable"):
        yield "data", worker_knobs(max(2, min(2 * workers, cores)))
    if setting(run, "optimizer", "fused") is None:
        yield "optimizer", {"optimizer.fused": "on"}


def usual(run: Run, cores: int) -> list[Arm]:
    """Where a first look, which is short, suggests nothing: what helps most scripts that are slow."""
    return [*(Arm(settings) for _, settings in _general(run, cores)), Arm(_LEFTOVERS)]


def candidates(findings: tuple[Finding, ...], run: Run, cores: int, most: int) -> list[Arm]:
    """At most so many, and each setting once."""
    chosen: list[Arm] = []
    for arm in (*from_findings(findings), *by_share(run, cores)):
        if not any(set(arm.settings) & set(one.settings) for one in chosen):
            chosen.append(arm)
    return (chosen or usual(run, cores))[:most]
