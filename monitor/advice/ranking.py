"""In which order findings are shown.

Two causes whose predicted gains can hardly be told apart are not ordered by the noise between two runs of one
script: there a measured cause comes before an assumed one, then the more specific one, then the one with
clearly more seconds, then the id.

On a GPU, time in which the device waits is measured; how much faster it would compute is a literature value.
Such a gain counts with its least where it is compared with others.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from math import log

from monitor.advice.rule import all_rules
from monitor.model.finding import Finding, Severity, Speedup

SEVERITY_ORDER: dict[Severity, int] = {"critical": 0, "warning": 1, "hint": 2, "healthy": 3}
"""That nothing was found never stands above a remedy."""
CLEARLY = 1.5
"""A cause with this many times the seconds has clearly more of them."""
LEAST_SHARE = 0.001
"""A smaller share of the time is none."""
NARROWEST = 0.03
"""The noise of a measurement: a range ends no closer than this to what it still allows."""


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Most severe first, then by what the remedy is likely to gain, then by how specific the cause is."""
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
    """What does not follow the noise: the rule, and the share of the time in coarse steps."""
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
    """Whether the other likely gain is within the range of this one, which is at least as wide as noise."""
    low, high = gain.low * (1.0 - NARROWEST), gain.high * (1.0 + NARROWEST)
    return low <= other.likely <= high
