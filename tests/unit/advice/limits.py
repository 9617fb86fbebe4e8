"""What every prediction must respect: no gain above what its evidence removes."""

from __future__ import annotations

from monitor.advice.prediction.gain import MAX_SPEEDUP
from monitor.model.finding import SERIOUS, Finding
from monitor.model.run import Run

ROUNDED = 1e-3
"""Gains have three decimals, shares in the evidence four digits."""


def most(share: float) -> float:
    """The gain if all of this share of the time goes."""
    return min(MAX_SPEEDUP, 1.0 / (1.0 - share)) if share < 1.0 else MAX_SPEEDUP


def check_limits(finding: Finding) -> None:
    """The gain stays within the share the finding names, the likely one within every share of the step shown
    as measured."""
    if finding.speedup is None:
        assert finding.share is None
        return
    assert finding.share is not None
    shown = [
        value
        for name, value in finding.evidence.items()
        if name.endswith("_share") and isinstance(value, float)
    ]
    likely, high = finding.speedup.likely, finding.speedup.high
    assert high <= most(finding.share) * (1 + ROUNDED), finding
    assert not shown or likely <= most(max(shown)) * (1 + ROUNDED) or max(shown) > 1 - ROUNDED, finding


def check_union(run: Run, findings: tuple[Finding, ...]) -> None:
    """Headline, list and combined figure agree; together the remedies gain no more than removing all they
    name."""
    assert run.combined is not None and run.verdict is not None
    serious = [one for one in findings if one.severity in SERIOUS]
    shares = [one.share for one in serious if one.share is not None]
    assert run.combined.high <= most(min(1.0, sum(shares))) * (1 + ROUNDED)
    first = next((one for one in findings if one.id == run.verdict.rule), None)
    if first is not None and run.verdict.gain is not None:
        assert first.speedup is not None and run.verdict.gain == first.speedup.likely
    if run.verdict.combined is not None:
        assert run.verdict.combined == run.combined.likely
