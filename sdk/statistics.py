"""Whole-run figures in constant memory: a histogram with 3 % buckets and a sum per phase."""

from __future__ import annotations

from array import array

from . import ring
from .phases import OTHER

_SUB_BITS = 5
_SUB = 1 << _SUB_BITS
STEADY, SAMPLED, WARMUP = range(3)
_UNSTEADY = ring.F_WARMUP | ring.F_SAMPLED


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

    __slots__ = ("fastest", "gc_ns", "histogram", "ns", "phases", "samples", "slowest")

    def __init__(self) -> None:
        self.histogram = Histogram()
        self.phases = [0] * (OTHER + 1)
        self.ns = self.samples = self.slowest = self.gc_ns = 0
        self.fastest = 1 << 62

    @property
    def steps(self) -> int:
        return self.histogram.total

    def add(self, words: memoryview, used: tuple[int, ...]) -> None:
        """Add whole records, column by column: one pass in C for each."""
        begins = words[ring.W_BEGIN :: ring.SLOT_WORDS].tolist()
        ends = words[ring.W_END :: ring.SLOT_WORDS].tolist()
        durations = [end - begin for begin, end in zip(begins, ends, strict=True)]
        for duration in durations:
            self.histogram.add(duration)
        self.ns += sum(durations)
        self.fastest = min(self.fastest, *durations)
        self.slowest = max(self.slowest, *durations)
        self.samples += _column(words, ring.W_SAMPLES)
        self.gc_ns += _column(words, ring.W_GC)
        for phase in used:
            self.phases[phase] += _column(words, ring.W_PHASES + phase)


def _column(words: memoryview, at: int) -> int:
    return sum(words[at :: ring.SLOT_WORDS].tolist())


class Totals:
    """Sums over all records: steady ones, closely watched ones, warm-up. Records are added up where they
    lie, many at once: that is five times cheaper than one by one."""

    __slots__ = ("_groups", "epoch_wait_ns", "epochs", "samples", "tokens", "used")

    def __init__(self) -> None:
        self._groups = (Group(), Group(), Group())
        self.used: tuple[int, ...] = ()
        self.samples = self.tokens = self.epochs = self.epoch_wait_ns = 0

    def use(self, phase: int) -> None:
        """Remember which phases there are."""
        if phase != OTHER and phase not in self.used:
            self.used = (*self.used, phase)

    def add(self, words: memoryview) -> None:
        """Add whole records."""
        if not words:
            return
        self.samples += _column(words, ring.W_SAMPLES)
        self.tokens += _column(words, ring.W_TOKENS)
        flags = words[ring.W_FLAGS :: ring.SLOT_WORDS].tolist()
        if not any(flags):
            self._groups[STEADY].add(words, self.used)
            return
        for number, flag in enumerate(flags):
            if flag & ring.F_EPOCH_START:
                self.epochs += 1
                self.epoch_wait_ns += words[number * ring.SLOT_WORDS + ring.W_PHASES]
        if not any(flag & _UNSTEADY for flag in flags):
            self._groups[STEADY].add(words, self.used)
            return
        for number, flag in enumerate(flags):
            kind = WARMUP if flag & ring.F_WARMUP else SAMPLED if flag & ring.F_SAMPLED else STEADY
            self._groups[kind].add(
                words[number * ring.SLOT_WORDS : (number + 1) * ring.SLOT_WORDS], self.used
            )

    def group(self, kind: int) -> Group:
        return self._groups[kind]

    def typical(self) -> Group:
        """The steady steps; of a very short run what there is."""
        return max(self._groups, key=lambda group: (min(group.steps, 3), group is self._groups[STEADY]))
