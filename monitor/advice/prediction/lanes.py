"""A step on a device has two lanes: the host, which launches work, and the device, which does it.

The gain of a change is found by replaying the step (`step_graph`) with the change made: host time removed,
work shortened, a wait dropped. Host time during which the device had work is then worth nothing, nor is a
faster kernel to a device that waits for its host. A graph that does not reproduce the measured step is not
used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

from monitor.advice.prediction.step_graph import Segment, StepGraph

ORDER = (
    "data", "transfer", "zero_grad", "forward", "sync", "backward", "grad_norm", "optimizer", "log",
    "between", "other", "validate", "checkpoint",
)  # fmt: skip
"""The usual order of the phases in a step; others come last."""
BESIDE = ("validate", "grad_norm", "log", "checkpoint")
"""Phases outside the actual training: what is not done there also saves the device's work."""
TOLERANCE, POINTS = 0.2, 0.15
"""Our choice: how closely the graph must reproduce the measured step, and the device's share of work, to be
used. The device is timed in other steps than the host, and steps differ."""
UNTOLD_LAUNCHES = 16
"""Our choice: launches in a phase of which only the time is known."""


class Edit(NamedTuple):
    """A change to the step: seconds the host saves by phase, and the factors that remain."""

    saved: Mapping[str, float]
    device: float = 1.0
    copies: float = 1.0
    """Faster copies are also no longer waited for."""
    syncs: float = 1.0
    """Of reads: a value that is not read is not copied either."""
    batch: float = 1.0
    host: float = 1.0
    """Factor on the host's own time, except the wait for data: how much faster or slower the next run may
    be."""
    along: float = 0.0
    """Share of the device's work in a phase that goes away with the host time that launched it."""


@dataclass(frozen=True)
class Lanes:
    """Seconds per step."""

    busy: Mapping[str, float]
    """The device's work, by the phase that launches it."""
    idle: Mapping[str, float]
    """The device's gaps, by the phase the host is in; if unknown, the most they can be."""
    ahead: Mapping[str, float]
    """How often (0 to 1) the device still has work at the end of a phase."""
    graph: StepGraph = field(default_factory=StepGraph)

    @property
    def period(self) -> float:
        return sum(self.busy.values()) + sum(self.idle.values())

    def share(self, phase: str) -> float:
        """Share of the period, work and gaps together."""
        took = self.busy.get(phase, 0.0) + self.idle.get(phase, 0.0)
        return took / self.period if self.period > 0 else 0.0

    def fitted(self, graph: StepGraph, host: Mapping[str, float], slower: bool) -> Lanes | None:
        """With this graph, fitted to the measured host and device times; None if it does not match the
        measured steps. `slower`: see `StepGraph.fitted`."""
        period, work = sum(host.values()), sum(self.busy.values()) / (self.period or 1.0)
        if not (period > 0 and work > 0 and graph.work > 0 and abs(graph.work / period - work) <= POINTS):
            return None
        shown = graph.working(work * period).fitted(host, slower)
        near = abs(shown.played.period - period) <= TOLERANCE * period
        return replace(self, graph=shown) if near else None

    def add_up(self, period: float) -> bool:
        """Whether the device's times alone add up to the measured step."""
        return abs(self.period - period) <= TOLERANCE * period

    def gain(self, edit: Edit, least: float = 0.0) -> float:
        """Steps per second after the change relative to before; a step takes at least `least` seconds."""
        before = self.graph.played.period
        least = min(least, before)  # loading may take that long already without holding us up
        after = max(self.graph.changed(lambda one: self._edited(one, edit)).played.period, least)
        return before / after if after > 0 else inf

    def _edited(self, one: Segment, edit: Edit) -> Segment:
        own, saved = self.graph.own.get(one.phase, 0.0), max(0.0, edit.saved.get(one.phase, 0.0))
        left = max(0.0, 1.0 - saved / own) if own > 0 else 1.0
        along = 1.0 if one.phase in BESIDE else edit.along
        holds, waits = float(edit.copies == 1.0), one.syncs + one.holds
        waited = (one.syncs * edit.syncs + one.holds * holds) / waits if waits else 1.0
        left_waits = self._waits_left(one.phase, saved - own)
        return replace(
            one,
            host=one.host * left * (edit.batch if one.phase == "data" else edit.host),
            device=one.device * edit.device * edit.batch * (1.0 - along * (1.0 - left)),
            copies=one.copies * edit.copies * edit.batch,
            reads=one.reads * edit.syncs * left_waits,
            waited=waited * left_waits,
        )

    def _waits_left(self, phase: str, beyond: float) -> float:
        """Time saved in a phase beyond the host's own time was waiting: that part of the waits goes."""
        waited = self.graph.waited(phase)
        return max(0.0, 1.0 - beyond / waited) if beyond > 0 and waited > 0 else 1.0


def place(phase: str) -> int:
    """The usual position of a phase in a step."""
    return ORDER.index(phase) if phase in ORDER else len(ORDER)
