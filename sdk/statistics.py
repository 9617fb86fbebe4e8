"""Statistics of training steps in bounded memory: one implementation for `TrainingMonitor.get_summary()` and
for everything the daemon shows about a run. Only the standard library; `monitor` imports this and `ring`.

A step's own time runs from its start to the next one's, less gpumon's own cost, and less validation and
checkpoints, which count as phases. All sums are integers (ns), so no figure depends on how records were
grouped.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate, repeat
from operator import add, mul, rshift, sub

from . import ring

NOT_STEADY = ring.F_WARMUP | ring.F_SAMPLED
"""Steps with one of these flags are excluded from steady figures."""
APART = ("validate", "checkpoint")
"""Phases that are not part of a step's own time, however short."""
_APART = tuple(ring.PHASES.index(name) for name in APART)
_SUB_BITS = 6
"""Buckets are 1/64 of a power of two wide, so the middle of one is within 0.8 % of every value in it."""


TELLING_NS = 10 * 10**9
"""Chosen: a run this long shows what gpumon costs. In a shorter one that is mostly one-time work (the probe,
the first sampled steps), whose share would say nothing about the training."""


def overhead_ratio(spent_ns: int, lasted_ns: int) -> float | None:
    """What gpumon cost as a share of a run's time; None if the run is too short to say."""
    return min(1.0, spent_ns / lasted_ns) if spent_ns and lasted_ns >= TELLING_NS else None


def less(whole: list[int], part: list[int]) -> list[int]:
    """Subtract element by element, never going below 1 ns: a step always takes some time."""
    left = list(map(sub, whole, part))
    return left if min(left) > 0 else [max(1, value) for value in left]


def own_times(net: list[int], phases: Mapping[int, list[int]]) -> list[int]:
    """What is left of each step without the phases in `APART`."""
    for phase in _APART:
        column = phases.get(phase)
        if column is not None and any(column):
            net = less(net, column)
    return net


def _shift(value: int) -> int:
    """Values below 128 each have their own bucket; above, bucket width doubles with every power of two. A
    value's bucket is (shift << 6) + (value >> shift)."""
    return max(0, value.bit_length() - _SUB_BITS - 1)


def _bucket(value: int) -> int:
    shift = _shift(value)
    return (shift << _SUB_BITS) + (value >> shift)


def _lower_edge(bucket: int) -> int:
    shift = max(0, (bucket >> _SUB_BITS) - 1)
    return (bucket - (shift << _SUB_BITS)) << shift


class Distribution:
    """Positive ns: exact count, sum, min and max; quantiles from the buckets."""

    __slots__ = ("buckets", "count", "first", "high", "low", "squares", "total")

    def __init__(self) -> None:
        self.buckets = array("Q")
        """Values in each bucket from `first` on, without a gap: a daemon keeps thousands of these, and a
        dictionary takes two to six times the memory and grows with every rare value."""
        self.first = 0
        self.count = 0
        self.total = 0
        self.squares = 0
        self.low = 0
        self.high = 0

    def add(self, values: Sequence[int]) -> None:
        """Sort once, then count one power of two at a time, in which all buckets have the same width. All
        work per value is done in C, which keeps the daemon's reader within its budget without numpy."""
        if not values:
            return
        ordered = sorted(values)
        self.low = min(self.low, ordered[0]) if self.count else ordered[0]
        self.high = max(self.high, ordered[-1])
        self.count += len(ordered)
        self.total += sum(ordered)
        self.squares += sum(map(mul, ordered, ordered))
        self._reach(_bucket(ordered[0]), _bucket(ordered[-1]) + 1)
        at, mine = 0, self.buckets
        while at < len(ordered):
            shift = _shift(ordered[at])
            end = bisect_left(ordered, 1 << (shift + _SUB_BITS + 1), at)
            base = (shift << _SUB_BITS) - self.first
            for part, count in Counter(map(rshift, ordered[at:end], repeat(shift))).items():
                mine[base + part] += count
            at = end

    def merge(self, other: Distribution) -> None:
        if not other.count:
            return
        self.low = min(self.low, other.low) if self.count else other.low
        self.high = max(self.high, other.high)
        self.count += other.count
        self.total += other.total
        self.squares += other.squares
        if not self.buckets:
            self.first, self.buckets = other.first, other.buckets[:]
            return
        self._reach(other.first, other.first + len(other.buckets))
        at = other.first - self.first
        end = at + len(other.buckets)
        self.buckets[at:end] = array("Q", map(add, self.buckets[at:end], other.buckets))

    def _reach(self, first: int, end: int) -> None:
        """Have all buckets from `first` to before `end`."""
        if not self.buckets:
            self.first = first
        if first < self.first:
            self.buckets[:0] = array("Q", bytes(8 * (self.first - first)))
            self.first = first
        missing = end - self.first - len(self.buckets)
        if missing > 0:
            self.buckets.frombytes(bytes(8 * missing))

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Values in ns at `shares` (ascending); the distribution must not be empty."""
        passed = list(accumulate(self.buckets))
        places = (bisect_left(passed, share * self.count) for share in shares)
        return [self._middle(self.first + at) if at < len(passed) else float(self.high) for at in places]

    def _middle(self, bucket: int) -> float:
        middle = (_lower_edge(bucket) + _lower_edge(bucket + 1) - 1) / 2
        return min(max(middle, self.low), self.high)

    def seconds(self) -> dict[str, float]:
        """mean, p50, p95, p99, min, max and stddev in seconds; empty without values."""
        if not self.count:
            return {}
        mean = self.total / self.count
        variance = max(0.0, self.squares / self.count - mean * mean)
        p50, p95, p99 = self.quantiles((0.5, 0.95, 0.99))
        found = {"mean": mean, "p50": p50, "p95": p95, "p99": p99, "min": self.low, "max": self.high}
        return {name: ns / 1e9 for name, ns in found.items()} | {"stddev": math.sqrt(variance) / 1e9}


class StepSums:
    """Sums over some steps, and the distribution of their own times."""

    __slots__ = (
        "micro_batches", "net_ns", "overhead_ns", "phase_ns", "raw_ns", "samples", "steady", "steps",
        "tokens",
    )  # fmt: skip

    def __init__(self) -> None:
        self.steps = self.micro_batches = self.samples = self.tokens = 0
        self.raw_ns = self.overhead_ns = self.net_ns = 0
        self.phase_ns = [0] * ring.PHASE_SLOTS
        self.steady = Distribution()

    def add_steps(
        self, raw: list[int], overhead: list[int], samples: int, tokens: int, phases: Mapping[int, int]
    ) -> list[int]:
        """Add the sums of some steps (`phases`: id → ns); returns each step's ns without our overhead. The
        caller decides which of them go into the distribution."""
        net = less(raw, overhead)
        self.steps += len(raw)
        self.samples += samples
        self.tokens += tokens
        self.raw_ns += sum(raw)
        self.overhead_ns += sum(overhead)
        self.net_ns += sum(net)
        for phase, took in phases.items():
            self.phase_ns[phase] += took
        return net

    def merge_sums(self, other: StepSums) -> None:
        self.steps += other.steps
        self.micro_batches += other.micro_batches
        self.samples += other.samples
        self.tokens += other.tokens
        self.raw_ns += other.raw_ns
        self.overhead_ns += other.overhead_ns
        self.net_ns += other.net_ns
        self.phase_ns = list(map(add, self.phase_ns, other.phase_ns))
        self.steady.merge(other.steady)

    @property
    def other_ns(self) -> int:
        """Time in no named phase."""
        return max(0, self.net_ns - sum(self.phase_ns))

    @property
    def total_ns(self) -> int:
        """All phases and the rest: the whole that shares refer to."""
        return sum(self.phase_ns) + self.other_ns

    def shares(self, names: Sequence[str]) -> dict[str, float]:
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

    def count_micro_batches(self, flags: Sequence[int]) -> None:
        """Add the micro-batches of the steps with these flags words."""
        self.micro_batches += ring.count_micro_batches(flags)

    @property
    def micro_batches_per_step(self) -> float | None:
        """None if every step has one: no gradients are accumulated."""
        return self.micro_batches / self.steps if self.micro_batches > self.steps else None

    def per_second(self, amount: int) -> float | None:
        """`amount` per second of the total time of these steps."""
        return amount * 1e9 / self.raw_ns if amount and self.raw_ns else None


_STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
            2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086)  # fmt: skip
_MANY = 2.0


def student(freedom: int) -> float:
    """Two-sided 95 % quantile of Student's distribution, by degrees of freedom (1 or more)."""
    return _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else _MANY
