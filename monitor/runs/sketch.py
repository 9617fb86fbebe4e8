"""A distribution in bounded memory: counts in logarithmic buckets 2 % wide, so a quantile is within 1 %.

Filled a batch at a time: sorted once, then one bisection per bucket instead of a logarithm per
value. That keeps the reader under its budget of 2 µs a record without numpy.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from operator import mul

from monitor.snapshot import Times

PER_OCTAVE = 35.0
"""2 ** (1 / 35) is a bucket ratio of 1.02."""


class Sketch:
    """Nanosecond values: exact count, sum, min and max; quantiles from the buckets."""

    __slots__ = ("buckets", "count", "high", "low", "squares", "total")

    def __init__(self) -> None:
        self.buckets: dict[int, int] = {}
        self.count = 0
        self.total = 0
        self.squares = 0
        self.low = 0
        self.high = 0

    def add(self, values: Sequence[int]) -> None:
        """Add positive values."""
        if not values:
            return
        ordered = sorted(values)
        self.low = min(self.low, ordered[0]) if self.count else ordered[0]
        self.high = max(self.high, ordered[-1])
        self.count += len(ordered)
        self.total += sum(ordered)
        self.squares += sum(map(mul, ordered, ordered))
        at = 0
        while at < len(ordered):
            key = int(PER_OCTAVE * math.log2(ordered[at]))
            end = max(at + 1, bisect_left(ordered, 2.0 ** ((key + 1) / PER_OCTAVE), at))
            self.buckets[key] = self.buckets.get(key, 0) + end - at
            at = end

    def merge(self, other: Sketch) -> None:
        if not other.count:
            return
        self.low = min(self.low, other.low) if self.count else other.low
        self.high = max(self.high, other.high)
        self.count += other.count
        self.total += other.total
        self.squares += other.squares
        mine = self.buckets
        for key, count in other.buckets.items():
            mine[key] = mine.get(key, 0) + count

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Values in ns at `shares` (ascending); only for a sketch that is not empty."""
        found: list[float] = []
        passed = 0
        for key in sorted(self.buckets):
            passed += self.buckets[key]
            while len(found) < len(shares) and passed >= shares[len(found)] * self.count:
                middle = 2.0 ** ((key + 0.5) / PER_OCTAVE)
                found.append(min(max(middle, self.low), self.high))
        return found + [float(self.high)] * (len(shares) - len(found))

    def times(self) -> Times:
        """The distribution in seconds."""
        if not self.count:
            return Times()
        p50, p95, p99 = self.quantiles((0.5, 0.95, 0.99))
        mean = self.total / self.count
        variance = max(0.0, self.squares / self.count - mean * mean)
        return Times(
            count=self.count,
            mean=mean / 1e9,
            p50=p50 / 1e9,
            p95=p95 / 1e9,
            p99=p99 / 1e9,
            min=self.low / 1e9,
            max=self.high / 1e9,
            stddev=math.sqrt(variance) / 1e9,
        )
