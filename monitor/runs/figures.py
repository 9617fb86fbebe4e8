"""Rolling and whole-run figures of one rank, in bounded memory and a few C calls per batch."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque

from monitor.runs.columns import Columns
from monitor.runs.sink import Counters
from monitor.runs.stalls import StallBook, Usual
from monitor.runs.tally import Tally
from monitor.runs.timeline import Timeline
from monitor.snapshot import STEP_BUCKETS, Device, Phase
from sdk import ring

BUCKETS = 12
BUCKET_NS = 5 * 10**9
BUCKET_STEPS = 8
"""The rolling window: 12 buckets of at least 5 s and 8 steps, so about the last minute."""
TAIL = 256
"""Newest steps kept per phase, for the quantiles of a phase."""
STRETCH_NS = 10**9
NOT_STEADY = ring.F_WARMUP | ring.F_SAMPLED
_BOUNDS = [int(bound * 1e9) for bound in STEP_BUCKETS]


def count(counters: Counters, columns: Columns) -> None:
    """Add a batch to what only grows."""
    counters.bad += columns.bad
    if columns.first == 1 and columns.begin:
        counters.first_begin_ns = columns.begin[0]
    counters.samples += sum(columns.samples)
    counters.tokens += sum(columns.tokens)
    named = 0
    for phase, took in columns.sums().items():
        counters.phase_ns[phase] += took
        named += took
    counters.other_ns += max(0, sum(columns.raw) - sum(columns.overhead) - named)
    measured, busy, starved, _ = columns.device
    counters.measured += measured
    counters.busy_ns += busy
    counters.starved_ns += starved
    _count_histogram(counters, columns)
    if any(columns.flags):
        counters.warmup_steps += sum(1 for flags in columns.flags if flags & ring.F_WARMUP)
        counters.sampled_steps += sum(1 for flags in columns.flags if flags & ring.F_SAMPLED)


def _count_histogram(counters: Counters, columns: Columns) -> None:
    """Bucket counts, and the newest step of each bucket as its example."""
    ordered = sorted(columns.raw)
    wanted = set()
    passed = 0
    for place, bound in enumerate((*_BOUNDS, None)):
        end = len(ordered) if bound is None else bisect_right(ordered, bound, passed)
        if end > passed:
            counters.histogram[place] += end - passed
            wanted.add(place)
        passed = end
    for at in range(len(columns) - 1, -1, -1):
        if not wanted:
            break
        place = bisect_left(_BOUNDS, columns.raw[at])
        if place in wanted:
            wanted.remove(place)
            counters.exemplars[place] = (columns.numbers[at], columns.raw[at], columns.end[at])


class Rolling:
    """The last minute or so as a queue of tallies, and everything before it as one."""

    def __init__(self) -> None:
        self.closed: deque[Tally] = deque(maxlen=BUCKETS - 1)
        self.open = Tally()
        self.before = Tally()
        """Every bucket that was ever closed, added up."""
        self._merged: Tally | None = None
        self._whole: Tally | None = None
        self._usual: Usual | None = None

    def add(self, tally: Tally) -> None:
        self.open.merge(tally)
        self._merged = self._whole = None
        if self.open.raw_ns >= BUCKET_NS and self.open.steps >= BUCKET_STEPS:
            self.closed.append(self.open)
            self.before.merge(self.open)
            self.open = Tally()
            self._usual = None

    def whole(self) -> Tally:
        """The run from its first steady step on."""
        if self._whole is None:
            self._whole = Tally()
            self._whole.merge(self.before)
            self._whole.merge(self.open)
        return self._whole

    def tally(self) -> Tally:
        if self._merged is None:
            self._merged = Tally()
            for part in (*self.closed, self.open):
                self._merged.merge(part)
        return self._merged

    def usual(self) -> Usual | None:
        """The usual step by now; renewed once per bucket, None while there are few steps."""
        if self._usual is None:
            tally = self.tally()
            if tally.steady.count >= 16:
                p50, p95 = tally.steady.quantiles((0.5, 0.95))
                means = {p: ns / tally.steps for p, ns in enumerate(tally.phase_ns) if ns}
                self._usual = Usual(p50, p95, means)
        return self._usual


class RankFigures:
    """Everything `Rank` says about steps."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.rolling = Rolling()
        self.stalls = StallBook(names)
        self.timeline = Timeline(names)
        self.tails: dict[int, deque[int]] = {}
        self.first_begin_ns: int | None = None
        self.last_end_ns: int | None = None
        self.epoch: int | None = None
        self.loss: float | None = None

    @property
    def whole(self) -> Tally:
        return self.rolling.whole()

    def rename(self, names: tuple[str, ...]) -> None:
        """The writer has named another phase of its own."""
        self.names = self.stalls.names = self.timeline.names = names

    def add(self, columns: Columns) -> None:
        """A batch in order; warm-up and sampled steps are left out of everything but the clock."""
        if not len(columns):
            return
        if self.first_begin_ns is None:
            self.first_begin_ns = columns.begin[0]
        self.last_end_ns = columns.end[-1]
        self.epoch = columns.epoch
        self.loss = columns.loss if columns.loss is not None else self.loss
        device = columns.device
        if any(columns.flags):
            columns.keep([not flags & NOT_STEADY for flags in columns.flags])
        if len(columns):
            self._add_stretches(columns, device)

    def _add_stretches(self, columns: Columns, device: tuple[int, int, int, int]) -> None:
        """Cut at whole seconds, so that a late start fills the timeline as an early one does."""
        start, stop = 0, len(columns)
        while start < stop:
            width = min(STRETCH_NS, self.timeline.width)
            end = bisect_right(columns.end, (columns.end[start] // width + 1) * width - 1, start)
            end = max(end, start + 1)
            part = columns if (start, end) == (0, stop) else columns.slice(start, end)
            self._add_stretch(part, device if end == stop else (0, 0, 0, 0))
            start = end

    def _add_stretch(self, columns: Columns, device: tuple[int, int, int, int]) -> None:
        tally = Tally()
        net = tally.add(columns)
        tally.add_device(device)
        steady, tally.stall_ns, kinds = self.stalls.cut(columns, net, self.rolling.usual())
        tally.steady.add(steady)
        for phase, column in columns.phases.items():
            self.tails.setdefault(phase, deque(maxlen=TAIL)).extend(column[-TAIL:])
        self.rolling.add(tally)
        last = {"loss": columns.loss, "device_memory_bytes": columns.memory or None}
        known = {name: float(value) for name, value in last.items() if value is not None}
        self.timeline.add(columns.end[-1], columns.numbers[0], tally, kinds, known)

    def phases(self, tally: Tally, counters: Counters) -> tuple[Phase, ...]:
        """Shares of `tally` (they sum to 1), quantiles of the newest steps, totals of the run."""
        shares = tally.shares(self.names)
        totals: dict[str, int] = {}
        tails: dict[str, list[int]] = {}
        for phase, total in enumerate(counters.phase_ns):
            if total:
                name = self.names[phase]
                totals[name] = totals.get(name, 0) + total
                tails.setdefault(name, sorted(self.tails.get(phase, ())))
        totals["other"] = totals.get("other", 0) + counters.other_ns
        mean = tally.total_ns / tally.steps / 1e9 if tally.steps else 0.0
        return tuple(
            _phase(name, shares.get(name, 0.0), mean, total, tails.get(name))
            for name, total in totals.items()
        )

    def device(self, tally: Tally, counters: Counters, dropped: int) -> Device:
        if not tally.measured:
            return Device(skipped_steps=dropped)
        starved = tally.starved_ratio()
        return Device(
            busy_seconds=counters.busy_ns / 1e9,
            starved_seconds=counters.starved_ns / 1e9,
            busy_ratio=None if starved is None else 1.0 - starved,
            starved_ratio=starved,
            queue_depth=tally.depth / tally.measured,
            measured_steps=counters.measured,
            skipped_steps=dropped,
        )


def _phase(name: str, share: float, mean: float, total_ns: int, tail: list[int] | None) -> Phase:
    return Phase(
        name=name,
        share=share,
        mean_seconds=share * mean,
        p50_seconds=tail[len(tail) // 2] / 1e9 if tail else None,
        p95_seconds=tail[int(len(tail) * 0.95)] / 1e9 if tail else None,
        total_seconds=total_ns / 1e9,
    )
