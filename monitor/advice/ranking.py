"""The order in which findings are shown.

Two causes whose predicted gains are barely distinguishable should not be ordered by the noise between two
runs of one script. Among those, a measured cause comes before an assumed one, then the more specific one,
then the one with clearly more seconds, then by id.

On a GPU, the time the device waits is measured; how much faster it would compute is a literature value. Such
a gain counts with its lower bound when compared with others.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from math import log

from monitor.advice.rule import all_rules
from monitor.model.finding import Finding, Severity, Speedup

SEVERITY_ORDER: dict[Severity, int] = {"critical": 0, "warning": 1, "hint": 2, "healthy": 3}
""""Nothing found" never ranks above a remedy."""
CLEARLY = 1.5
"""A cause with this many times the seconds has clearly more."""
LEAST_SHARE = 0.001
"""A smaller share of the time counts as none."""
NARROWEST = 0.03
"""Measurement noise: a range extends at least this far beyond its ends."""


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Most severe first, then by the remedy's likely gain, then by how specific the cause is."""
    left = sorted(findings, key=_weight)
    found: list[Finding] = []
    while left:
        close = [one for one in left if _close(left[0], one)]
        found += sorted(close, key=_stable)
        left = [one for one in left if one not in close]
    return tuple(found)


@cache
def _bonuses() -> dict[str, float]:
    return {rule.id: rule.rank_bonus for rule in all_rules()}


def _weight(finding: Finding) -> tuple[int, float, str]:
    specific = _bonuses().get(finding.id, 0.0)
    gain = _counted(finding.speedup) - 1.0 if finding.speedup else specific
    return (SEVERITY_ORDER[finding.severity], -gain * (1.0 + specific), finding.id)


def _counted(gain: Speedup) -> float:
    return gain.low if _assumed(gain) else gain.likely


def _assumed(gain: Speedup | None) -> bool:
    return gain is not None and gain.verified_on == "none"


def _stable(finding: Finding) -> tuple[bool, float, int, str]:
    """What does not depend on noise: the rule, and the share of the time in coarse steps."""
    share = max(finding.share or 0.0, LEAST_SHARE)
    bonus, coarse = _bonuses().get(finding.id, 0.0), round(log(share) / log(CLEARLY))
    return (_assumed(finding.speedup), -bonus, -coarse, finding.id)


def _close(first: Finding, other: Finding) -> bool:
    if first is other:
        return True
    if first.severity != other.severity or first.speedup is None or other.speedup is None:
        return False
    return _allows(first.speedup, other.speedup) and _allows(other.speedup, first.speedup)


def _allows(gain: Speedup, other: Speedup) -> bool:
    """Whether the other likely gain is within this one's range, widened by noise."""
    low, high = gain.low * (1.0 - NARROWEST), gain.high * (1.0 + NARROWEST)
    return low <= other.likely <= high
