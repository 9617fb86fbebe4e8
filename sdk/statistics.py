"""Whole-run figures in constant memory: a histogram with 3 % buckets and a sum per phase."""

from __future__ import annotations

from array import array

from . import ring
from .phases import OTHER

_SUB_BITS = 5
_SUB = 1 << _SUB_BITS


class Histogram:
    """Counts of durations; a bucket is 1/32 of a power of two wide."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = array("Q", bytes(8 * 65 * _SUB))
        self.total = 0

    def add(self, value: int) -> None:
        bits = value.bit_length()
        shift = bits - _SUB_BITS - 1
        sub = (value >> shift) & (_SUB - 1) if shift > 0 else value & (_SUB - 1)
        self.counts[(bits << _SUB_BITS) + sub] += 1
        self.total += 1

    def quantile(self, share: float) -> float | None:
        """Middle of the bucket that holds the given share of all values; None when empty."""
        if not self.total:
            return None
        left = share * self.total
        for index, count in enumerate(self.counts):
            left -= count
            if count and left <= 0:
                return _middle(index)
        return None


def _middle(index: int) -> float:
    bits, sub = index >> _SUB_BITS, index & (_SUB - 1)
    shift = bits - _SUB_BITS - 1
    if shift < 0:
        return float(sub)
    return float((_SUB + sub) << shift) + (1 << shift) / 2


class Group:
    """Sums over the records of one kind."""

    __slots__ = ("fastest", "histogram", "ns", "phases", "samples", "slowest")

    def __init__(self) -> None:
        self.histogram = Histogram()
        self.phases = [0] * (OTHER + 1)
        self.ns = self.samples = self.slowest = 0
        self.fastest = 1 << 62

    def add(self, record: array[int], duration: int, used: tuple[int, ...]) -> None:
        self.ns += duration
        self.samples += record[ring.W_SAMPLES]
        self.histogram.add(duration)
        if duration < self.fastest:
            self.fastest = duration
        if duration > self.slowest:
            self.slowest = duration
        phases = self.phases
        for phase in used:
            phases[phase] += record[ring.W_PHASES + phase]

    @property
    def steps(self) -> int:
        return self.histogram.total


class Totals:
    """Sums over all records: steady ones, closely watched ones, and counters over everything."""

    __slots__ = ("sampled", "samples", "steady", "steps", "tokens", "used", "warmup")

    def __init__(self) -> None:
        self.steady = Group()
        self.sampled = Group()
        self.warmup = Group()
        self.used: tuple[int, ...] = ()
        self.steps = self.samples = self.tokens = 0

    def use(self, phase: int) -> None:
        """Phases are summed only once they have been named: a step has five, not sixteen."""
        if phase != OTHER and phase not in self.used:
            self.used = (*self.used, phase)

    def add(self, record: array[int]) -> None:
        self.steps += 1
        self.samples += record[ring.W_SAMPLES]
        self.tokens += record[ring.W_TOKENS]
        flags = record[ring.W_FLAGS]
        if flags & ring.F_WARMUP:
            group = self.warmup
        elif flags & ring.F_SAMPLED:
            group = self.sampled
        else:
            group = self.steady
        group.add(record, record[ring.W_END] - record[ring.W_BEGIN], self.used)

    def typical(self) -> Group:
        """The steady steps; of a very short run what there is."""
        return max(
            (self.steady, self.sampled, self.warmup),
            key=lambda group: (min(group.steps, 3), group is self.steady),
        )
