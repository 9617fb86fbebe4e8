"""Whether a run gets slower, and what else changed along with it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from monitor.advice.context.run import RunContext
from monitor.model import units
from monitor.model.run import Window

LEAST_WINDOWS, MOST_WINDOWS = 6, 16
"""Windows needed for a trend, and the maximum number compared pairwise."""
LEAST_STEPS = 3
"""A window needs this many steps to count."""
PARTS = 3
"""Early means the first third of the windows, late the last."""
EXPLAINED = 0.5
"""A phase must account for this share of the growth to be named."""
SHARE_GROWN, REST_SHRUNK = 0.05, 0.7
"""A phase grew disproportionately if its share rose by this much, or all others' fell to this factor."""
MEMORY_GROWN, MEMORY_GROWN_BYTES = 1.1, 16 << 20
"""Memory counts as having grown along with the step time from this ratio and this many bytes."""
CLOCK_FELL = 0.92
"""A clock counts as having fallen along with the throughput below this share."""
PLAYED = ("rollout", "forward", "backward")
"""Phases that grow with the length of an agent's games."""
CONCORDANT = 0.72
"""Share of window pairs in which the later window must be slower."""


@dataclass(frozen=True, slots=True)
class Decay:
    """The usual step early and late, and what grew."""

    early: float
    late: float
    phase: str | None
    moved: tuple[str, ...]
    """Clauses about what else changed."""
    evidence: dict[str, Any] = field(default_factory=dict)


def decay(run: RunContext) -> Decay | None:
    """The run's decay, or None: later windows are slower than earlier ones, lastingly and gradually."""
    windows = _joined([window for window in run.run.timeline if window.step_p50])
    if len(windows) < LEAST_WINDOWS:
        return None
    third = len(windows) // PARTS
    early, late = windows[:third], windows[-third:]
    before, after = _middle(early), _middle(late)
    if before <= 0 or before / after > run.policy.trend_ratio or not _rising(windows):
        return None
    phase = _grown(early, late, before, after)
    moved, evidence = _moved(early, late)
    if phase is None and not moved:
        return None  # everything equally slower: the machine, not the run
    if phase in PLAYED and "rollout" in run.phases:
        return None  # an agent that gets better plays for longer, and learns from more
    best = min(before, _middle(windows[: max(2, len(windows) // 6)]))
    return Decay(best, after, phase, moved, evidence)


def _joined(windows: Sequence[Window]) -> list[Window]:
    """Merges neighbours until each has enough steps: long steps leave one or two per window."""
    found: list[Window] = []
    for window in windows:
        if found and found[-1].steps < LEAST_STEPS:
            found[-1] = _together(found[-1], window)
        else:
            found.append(window)
    return [window for window in found if window.steps >= LEAST_STEPS]


def _together(one: Window, two: Window) -> Window:
    """Both as one, weighted by steps; memory and clock readings are the later ones."""
    steps = one.steps + two.steps
    share = two.steps / steps if steps else 0.0
    names = {*one.phases, *two.phases}
    phases = {
        name: (1.0 - share) * one.phases.get(name, 0.0) + share * two.phases.get(name, 0.0) for name in names
    }
    median = (1.0 - share) * (one.step_p50 or 0.0) + share * (two.step_p50 or 0.0)
    return replace(two, start=one.start, steps=steps, step_p50=median, phases=phases)


def _middle(windows: Sequence[Window]) -> float:
    return statistics.median(window.step_p50 or 0.0 for window in windows)


def _rising(windows: Sequence[Window]) -> bool:
    """Gradual, not in one jump: most later windows are slower than most earlier ones."""
    chosen = windows[:: max(1, len(windows) // MOST_WINDOWS)]
    times = [window.step_p50 or 0.0 for window in chosen]
    pairs = [(a, b) for at, a in enumerate(times) for b in times[at + 1 :]]
    return sum(b > a for a, b in pairs) >= CONCORDANT * len(pairs)


def _grown(early: Sequence[Window], late: Sequence[Window], before: float, after: float) -> str | None:
    """The phase whose seconds per step grew most, if it explains at least half of the growth and grew
    disproportionately."""
    names = {name for window in (*early, *late) for name in window.phases}
    grown = {name: _share(late, name) * after - _share(early, name) * before for name in names}
    name = max(grown, key=lambda phase: grown[phase], default=None)
    if name is None or grown[name] < EXPLAINED * (after - before):
        return None
    first, last = _share(early, name), _share(late, name)
    return name if last >= first + SHARE_GROWN or 1.0 - last <= REST_SHRUNK * (1.0 - first) else None


def _share(windows: Sequence[Window], name: str) -> float:
    return statistics.fmean(window.phases.get(name, 0.0) for window in windows)


def _moved(early: Sequence[Window], late: Sequence[Window]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Memory that grew or clocks that fell, in words and numbers."""
    evidence: dict[str, Any] = {}
    clauses = []
    for name, label in (("rss_bytes", "memory"), ("device_memory_bytes", "device memory")):
        first, last = getattr(early[0], name), getattr(late[-1], name)
        if first and last and last > MEMORY_GROWN * first and last - first > MEMORY_GROWN_BYTES:
            clauses.append(f"{label} grew from {units.size(first)} to {units.size(last)}")
            evidence[f"{name}_early"], evidence[f"{name}_late"] = first, last
    first, last = early[0].sm_clock_hertz, late[-1].sm_clock_hertz
    if first and last and last < CLOCK_FELL * first:
        clauses.append(f"the GPU clock fell to {units.percent(last / first)}")
        evidence["clock_ratio"] = last / first
    return tuple(clauses), evidence
