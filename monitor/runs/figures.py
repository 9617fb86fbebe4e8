"""Rolling and whole-run figures of one rank, in bounded memory and a few C calls per batch."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque

from monitor.model.records import Counters
from monitor.model.run import STEP_BUCKETS, Phase
from monitor.model.steps import Columns
from monitor.runs.stalls import StallBook, Usual
from monitor.runs.tally import Tally
from monitor.runs.timeline import Timeline
from sdk import ring
from sdk.statistics import NOT_STEADY

BUCKETS = 12
BUCKET_NS = 5 * 10**9
BUCKET_STEPS = 8
"""The rolling window: 12 buckets of at least 5 s and 8 steps, so about the last minute."""
TAIL = 256
"""Latest steps kept per phase, for its quantiles."""
STRETCH_NS = 10**9
"""Steps are summed in stretches of at most a second."""
_BOUNDS = [int(bound * 1e9) for bound in STEP_BUCKETS]


def count(counters: Counters, columns: Columns) -> None:
    """Add a batch to the counters that only grow."""
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
    counters.limit()


def _count_histogram(counters: Counters, columns: Columns) -> None:
    """Bucket counts, and the latest step of each bucket as its example."""
    ordered = sorted(columns.raw)
    wanted = set()
    passed = 0
    while passed < len(ordered):
        place = bisect_left(_BOUNDS, ordered[passed])
        end = bisect_right(ordered, _BOUNDS[place], passed) if place < len(_BOUNDS) else len(ordered)
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
        """The sum of every bucket ever closed."""
        self._recent: Tally | None = None
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
            self._recent = self._usual = None

    def whole(self) -> Tally:
        """The run from its first steady step."""
        if self._whole is None:
            self._whole = Tally.of(self.before, self.open)
        return self._whole

    def tally(self) -> Tally:
        """The last minute; closed buckets are summed only when one is added."""
        if self._merged is None:
            self._recent = self._recent or Tally.of(*self.closed)
            self._merged = Tally.of(self._recent, self.open)
        return self._merged

    def usual(self) -> Usual | None:
        """The usual step at present; updated once per bucket, None while there are few steps."""
        if self._usual is None:
            tally = self.tally()
            if tally.steady.count >= 16:
                p50, p95 = tally.steady.quantiles((0.5, 0.95))
                means = {p: ns / tally.steps for p, ns in enumerate(tally.phase_ns) if ns}
                self._usual = Usual(p50, p95, means)
        return self._usual


class RankFigures:
    """Everything `Rank` reports about steps."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.rolling = Rolling()
        self.stalls = StallBook(names)
        self.timeline: Timeline | None = Timeline(names)
        """None once another rank proves to be the run's first: the run shows that one's."""
        self.tails: dict[int, deque[int]] = {}
        self.first_begin_ns: int | None = None
        self.last_end_ns: int | None = None
        self.epoch: int | None = None
        self.loss: float | None = None

    @property
    def whole(self) -> Tally:
        return self.rolling.whole()

    def rename(self, names: tuple[str, ...]) -> None:
        """The writer has named another custom phase."""
        self.names = self.stalls.names = names
        if self.timeline is not None:
            self.timeline.names = names

    def keep_timeline(self, wanted: bool) -> None:
        """A timeline first wanted later starts now."""
        if wanted != (self.timeline is not None):
            self.timeline = Timeline(self.names) if wanted else None

    def add(self, columns: Columns) -> None:
        """A batch, in order; warm-up and sampled steps count only for the clock."""
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
        """A tick's batch is one stretch; after a late start it is many."""
        start, stop = 0, len(columns)
        while start < stop:
            end = max(bisect_right(columns.end, self._stretch_end(columns.end[start]), start), start + 1)
            part = columns if (start, end) == (0, stop) else columns.slice(start, end)
            self._add_stretch(part, device if end == stop else (0, 0, 0, 0))
            start = end

    def _stretch_end(self, first_ns: int) -> int:
        """Cut at whole seconds, so that a late start fills the timeline like an early one; without a
        timeline, one second later."""
        if self.timeline is None:
            return first_ns + STRETCH_NS
        width = min(STRETCH_NS, self.timeline.width)
        return (first_ns // width + 1) * width - 1

    def _add_stretch(self, columns: Columns, device: tuple[int, int, int, int]) -> None:
        tally = Tally()
        net = tally.add(columns)
        tally.add_device(device)
        steady, tally.stall_ns, kinds = self.stalls.cut(columns, net, self.rolling.usual())
        tally.steady.add(steady)
        for phase, column in columns.phases.items():
            self.tails.setdefault(phase, deque(maxlen=TAIL)).extend(column[-TAIL:])
        self.rolling.add(tally)
        if self.timeline is not None:
            last = {"loss": columns.loss, "device_memory_bytes": columns.memory or None}
            known = {name: float(value) for name, value in last.items() if value is not None}
            self.timeline.add(columns.end[-1], columns.numbers[0], tally, kinds, known)

    def phases(self, tally: Tally, counters: Counters) -> tuple[Phase, ...]:
        """Shares of `tally` (summing to 1), quantiles of the latest steps, totals of the run."""
        shares = tally.shares(self.names)
        totals: dict[str, int] = {}
        tails: dict[str, list[int]] = {}
        for phase, total in enumerate(counters.phase_ns):
            if total:
                name = self.names[phase]
                totals[name] = totals.get(name, 0) + total
                tails.setdefault(name, sorted(self.tails.get(phase, ())))
        totals["other"] = totals.get("other", 0) + counters.other_ns
        # gpumon's own cost sits in the phases where it was spent; it is taken out of each in proportion.
        mean = min(tally.total_ns, tally.net_ns) / tally.steps / 1e9 if tally.steps else 0.0
        return tuple(
            _phase(name, shares.get(name, 0.0), mean, total, tails.get(name))
            for name, total in totals.items()
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
