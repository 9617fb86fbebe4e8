"""Sums over a stretch of steps: a second, a rolling bucket, a timeline window, a whole run."""

from __future__ import annotations

from operator import sub

from monitor.runs.columns import Columns
from monitor.runs.sketch import Sketch
from sdk.ring import PHASE_SLOTS


def less(whole: list[int], part: list[int]) -> list[int]:
    """Element by element, never below 1 ns: what is left goes into logarithmic buckets."""
    left = list(map(sub, whole, part))
    return left if min(left) > 0 else [max(1, value) for value in left]


class Tally:
    """Steps without warm-up and sampled ones. `steady` leaves stalls out, the sums have them in."""

    __slots__ = (
        "busy_ns",
        "depth",
        "measured",
        "other_ns",
        "overhead_ns",
        "phase_ns",
        "raw_ns",
        "samples",
        "stall_ns",
        "starved_ns",
        "steady",
        "steps",
        "tokens",
    )

    def __init__(self) -> None:
        self.steps = self.samples = self.tokens = 0
        self.raw_ns = self.overhead_ns = self.other_ns = self.stall_ns = 0
        self.measured = self.busy_ns = self.starved_ns = self.depth = 0
        self.phase_ns = [0] * PHASE_SLOTS
        self.steady = Sketch()

    def merge(self, other: Tally) -> None:
        self.steps += other.steps
        self.samples += other.samples
        self.tokens += other.tokens
        self.raw_ns += other.raw_ns
        self.overhead_ns += other.overhead_ns
        self.other_ns += other.other_ns
        self.stall_ns += other.stall_ns
        self.measured += other.measured
        self.busy_ns += other.busy_ns
        self.starved_ns += other.starved_ns
        self.depth += other.depth
        for phase, value in enumerate(other.phase_ns):
            if value:
                self.phase_ns[phase] += value
        self.steady.merge(other.steady)

    @property
    def total_ns(self) -> int:
        """All phases and the rest: what shares are of."""
        return sum(self.phase_ns) + self.other_ns

    def add(self, columns: Columns) -> list[int]:
        """Add the sums of `columns`; returns each step's own ns, our overhead taken out."""
        net = less(columns.raw, columns.overhead)
        self.steps += len(columns)
        self.samples += sum(columns.samples)
        self.tokens += sum(columns.tokens)
        self.raw_ns += sum(columns.raw)
        self.overhead_ns += sum(columns.overhead)
        named = 0
        for phase, took in columns.sums().items():
            self.phase_ns[phase] += took
            named += took
        self.other_ns += max(0, sum(net) - named)
        return net

    def add_device(self, device: tuple[int, int, int, int]) -> None:
        self.measured += device[0]
        self.busy_ns += device[1]
        self.starved_ns += device[2]
        self.depth += device[3]

    def shares(self, names: tuple[str, ...]) -> dict[str, float]:
        """Phase name → share of the time; sums to 1, empty without steps."""
        total = self.total_ns
        if not total:
            return {}
        found: dict[str, float] = {}
        for phase, value in enumerate(self.phase_ns):
            if value:
                found[names[phase]] = found.get(names[phase], 0.0) + value / total
        found["other"] = found.get("other", 0.0) + self.other_ns / total
        return found

    def starved_ratio(self) -> float | None:
        device = self.busy_ns + self.starved_ns
        return self.starved_ns / device if device else None
