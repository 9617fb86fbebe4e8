"""Whether a run gets slower, from when on, and what moved along with it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from monitor.advice.context import RunContext
from monitor.advice.finding import percent, size
from monitor.snapshot import Window

LEAST_WINDOWS = 6
MOST_WINDOWS = 16
CONCORDANT = 0.72
"""Share of the pairs of windows in which the later one is slower."""


@dataclass(frozen=True, slots=True)
class Decay:
    """Usual step early and late, and what grew."""

    early: float
    late: float
    phase: str | None
    along: str
    evidence: dict[str, Any] = field(default_factory=dict)


def decay(run: RunContext) -> Decay | None:
    """The run's decay, or None: later windows slower than earlier ones, lastingly and by degrees."""
    windows = [window for window in run.run.timeline if window.step_p50 and window.steps >= 3]
    if len(windows) < LEAST_WINDOWS:
        return None
    third = len(windows) // 3
    early, late = windows[:third], windows[-third:]
    before, after = _middle(early), _middle(late)
    if before <= 0 or before / after > run.policy.trend_ratio or not _rising(windows):
        return None
    phase = _grown(early, late, before, after)
    along, evidence = _moved(early, late)
    if phase is None and not along:
        return None  # everything slower alike: the machine, not the run
    best = min(before, _middle(windows[: max(2, len(windows) // 6)]))
    return Decay(best, after, phase, along, evidence)


def _middle(windows: Sequence[Window]) -> float:
    return statistics.median(window.step_p50 or 0.0 for window in windows)


def _rising(windows: Sequence[Window]) -> bool:
    """By degrees, not a single step aside: most later windows are slower than most earlier ones."""
    chosen = windows[:: max(1, len(windows) // MOST_WINDOWS)]
    times = [window.step_p50 or 0.0 for window in chosen]
    pairs = [(a, b) for at, a in enumerate(times) for b in times[at + 1 :]]
    return sum(b > a for a, b in pairs) >= CONCORDANT * len(pairs)


def _grown(early: Sequence[Window], late: Sequence[Window], before: float, after: float) -> str | None:
    """The phase whose seconds a step grew most, when it explains at least half of the growth and grew
    out of proportion."""
    names = {name for window in (*early, *late) for name in window.phases}
    grown = {name: _share(late, name) * after - _share(early, name) * before for name in names}
    name = max(grown, key=lambda phase: grown[phase], default=None)
    if name is None or grown[name] < 0.5 * (after - before):
        return None
    first, last = _share(early, name), _share(late, name)
    return name if last >= first + 0.05 or 1.0 - last <= 0.7 * (1.0 - first) else None


def _share(windows: Sequence[Window], name: str) -> float:
    return statistics.fmean(window.phases.get(name, 0.0) for window in windows)


def _moved(early: Sequence[Window], late: Sequence[Window]) -> tuple[str, dict[str, Any]]:
    """Memory that grew or clocks that fell meanwhile, in words and numbers."""
    evidence: dict[str, Any] = {}
    words = ""
    for name, label in (("rss_bytes", "memory"), ("device_memory_bytes", "device memory")):
        first, last = getattr(early[0], name), getattr(late[-1], name)
        if first and last and last > 1.1 * first and last - first > 16 << 20:
            words += f"; {label} grew from {size(first)} to {size(last)}"
            evidence[f"{name}_early"], evidence[f"{name}_late"] = first, last
    first, last = early[0].sm_clock_hertz, late[-1].sm_clock_hertz
    if first and last and last < 0.92 * first:
        words += f"; the GPU clock fell to {percent(last / first)}"
        evidence["clock_ratio"] = last / first
    return words, evidence
