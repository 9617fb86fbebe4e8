"""Steps far longer than usual, classified by what they were doing.

Validation and checkpoints are cut out of their step and counted however short they are. Any other step is a
stall if it is several times the usual step *and* beyond what the run does anyway (a loader that delivers in
bursts makes every n-th step long; that is normal, not a stall).
"""

from __future__ import annotations

import statistics
from collections import deque

from msgspec import Struct

from monitor.model.run import Stall
from monitor.model.steps import Columns
from sdk import ring
from sdk.statistics import APART, less

OWN_PHASES = APART
TIMES_MEDIAN = 4.0
TIMES_P95 = 2.0
LEAST_EXCESS_NS = 2_000_000
"""A judgement: beyond all three a step is a stall; a scheduler takes two milliseconds now and then."""
NEW_NORMAL = 3
"""More consecutive long steps than this are the new normal, not stalls."""
NEW_NORMAL_SHARE = 0.2
"""If more than this share of steps are long, they are the usual ones."""
RECENT = 33
"""Step numbers kept per kind, to find the typical distance."""


class Usual(Struct, frozen=True):
    """The usual step: its quantiles and where its time goes."""

    p50: float
    p95: float
    phases: dict[int, float]

    @property
    def limit(self) -> float:
        return max(TIMES_MEDIAN * self.p50, TIMES_P95 * self.p95, self.p50 + LEAST_EXCESS_NS)


def usual_of(net: list[int]) -> Usual | None:
    """The usual step of a single batch, for when there is no history yet."""
    if len(net) < 8:
        return None
    ordered = sorted(net)
    return Usual(ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)], {})


class _Kind:
    __slots__ = ("count", "recent", "total_ns")

    def __init__(self) -> None:
        self.count = 0
        self.total_ns = 0
        self.recent: deque[int] = deque(maxlen=RECENT)

    def stall(self, kind: str, steady_ns: int) -> Stall:
        return Stall(
            kind=kind,
            count=self.count,
            total_seconds=self.total_ns / 1e9,
            share=min(1.0, self.total_ns / steady_ns) if steady_ns else 0.0,
            every_steps=_period(self.recent),
            mean_seconds=self.total_ns / self.count / 1e9,
            last_step=self.recent[-1],
        )


def _period(steps: deque[int]) -> float | None:
    """The typical distance, if most distances are within a quarter of it."""
    distances = [b - a for a, b in zip(steps, list(steps)[1:], strict=False)]
    if len(distances) < 2:
        return None
    middle = statistics.median(distances)
    near = sum(abs(distance - middle) <= max(1.0, 0.25 * middle) for distance in distances)
    return float(middle) if middle > 0 and near >= 0.7 * len(distances) else None


class StallBook:
    """All stalls of one rank, by kind."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.kinds: dict[str, _Kind] = {}
        self._in_a_row = 0

    def note(self, kind: str, number: int, took_ns: int) -> None:
        entry = self.kinds.setdefault(kind, _Kind())
        entry.count += 1
        entry.total_ns += took_ns
        entry.recent.append(number)

    def stalls(self, steady_ns: int) -> tuple[Stall, ...]:
        """Largest first."""
        found = [entry.stall(kind, steady_ns) for kind, entry in self.kinds.items()]
        return tuple(sorted(found, key=lambda stall: -stall.total_seconds))

    def cut(self, columns: Columns, net: list[int], usual: Usual | None) -> tuple[list[int], int, list[str]]:
        """Record the stalls among `net`: (steady steps, ns the stalls cost, kinds seen)."""
        net, own_ns, kinds = self._cut_own_phases(columns, net)
        usual = usual or usual_of(net)
        if usual is None or max(net) <= usual.limit:
            self._in_a_row = 0
            return net, own_ns, kinds
        limit = usual.limit
        long = [at for at, took in enumerate(net) if took > limit]
        if self._is_new_normal(len(long), len(net)):
            return net, own_ns, kinds
        for at in long:
            kind, excess = self._cause(columns, at, usual), int(net[at] - usual.p50)
            self.note(kind, columns.numbers[at], excess)
            kinds.append(kind)
            own_ns += excess
        return [took for took in net if took <= limit], own_ns, kinds

    def _is_new_normal(self, long: int, of: int) -> bool:
        self._in_a_row = self._in_a_row + long if long == of else long
        return self._in_a_row > NEW_NORMAL if long == of else long > max(NEW_NORMAL, NEW_NORMAL_SHARE * of)

    def _cut_own_phases(self, columns: Columns, net: list[int]) -> tuple[list[int], int, list[str]]:
        took, kinds = 0, []
        for phase, column in columns.phases.items():
            name = self.names[phase]
            if name not in OWN_PHASES or not any(column):
                continue
            for number, value in zip(columns.numbers, column, strict=True):
                if value:
                    self.note(name, number, value)
            net = less(net, column)
            took += sum(column)
            kinds.append(name)
        return net, took, kinds

    def _cause(self, columns: Columns, at: int, usual: Usual) -> str:
        """What the long step at position `at` was doing."""
        excess = columns.raw[at] - usual.p50
        if columns.flags[at] & ring.F_COMPILED:
            return "recompile"
        if columns.gc[at] > 0.5 * excess:
            return "gc"
        grown = {p: column[at] - usual.phases.get(p, 0.0) for p, column in columns.phases.items()}
        grown = {p: value for p, value in grown.items() if self.names[p] not in OWN_PHASES}
        named = sum(max(0.0, value) for value in grown.values())
        phase = max(grown, key=lambda p: grown[p], default=None)
        if phase is None or grown[phase] < excess - named:
            return "other"
        if self.names[phase] == "data" and columns.flags[at] & ring.F_EPOCH_START:
            return "epoch_start"
        return self.names[phase]
