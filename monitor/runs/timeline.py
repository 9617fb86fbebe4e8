"""A run's timeline: at most 64 windows however long it runs; when they are full, their width doubles."""

from __future__ import annotations

from monitor.model.run import Window
from monitor.runs.tally import Tally

WINDOWS = 64
FIRST_WIDTH_NS = 62_500_000
"""Our choices: 64 windows fit on a screen; the first width, doubled ten times, is about a minute."""
TREND_STEPS = 10
TREND_NS = 2 * 10**9
"""Minimum steps and time for a rate to mean anything: a loader delivers in bursts."""
TREND_STRETCHES = 6
"""Three for the beginning and three for now: the median of three ignores one outlier."""


class _Cell:
    """One window being filled."""

    __slots__ = ("first_step", "gauges", "last", "stalls", "tally")

    def __init__(self, first_step: int) -> None:
        self.first_step = first_step
        self.tally = Tally()
        self.stalls: dict[str, None] = {}
        self.last: dict[str, float] = {}
        """Latest value of: loss, device_memory_bytes."""
        self.gauges: dict[str, tuple[float, int]] = {}
        """Sum and count of external readings: rss_bytes, gpu_utilization_ratio, …"""

    def merge(self, later: _Cell) -> None:
        self.tally.merge(later.tally)
        self.stalls |= later.stalls
        self.last |= later.last
        for name, (total, count) in later.gauges.items():
            mine = self.gauges.get(name, (0.0, 0))
            self.gauges[name] = (mine[0] + total, mine[1] + count)

    def mean(self, name: str) -> float | None:
        total, count = self.gauges.get(name, (0.0, 0))
        return total / count if count else None


class Timeline:
    """Must be fed in chronological order."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.origin: int | None = None
        self.width = FIRST_WIDTH_NS
        self.cells: dict[int, _Cell] = {}
        self._made: dict[int, Window] = {}

    def add(
        self, end_ns: int, first_step: int, tally: Tally, kinds: list[str], last: dict[str, float]
    ) -> None:
        """Steps that ended at `end_ns` (monotonic); takes ownership of the tally."""
        if self.origin is None:
            self.origin = end_ns - tally.raw_ns
        cell = self._cell(end_ns, first_step)
        if cell.tally.steps:
            cell.tally.merge(tally)
        else:
            cell.tally = tally
        cell.stalls |= dict.fromkeys(kinds)
        cell.last |= last

    def gauge(self, now_ns: int, readings: dict[str, float | None]) -> None:
        """Current readings, for the window they fall into; ignored until there are steps."""
        at = (now_ns - self.origin) // self.width if self.origin is not None else -1
        cell = self.cells.get(at)
        if cell is None:
            return
        self._made.pop(at, None)
        for name, value in readings.items():
            if value is not None:
                total, count = cell.gauges.get(name, (0.0, 0))
                cell.gauges[name] = (total + value, count + 1)

    def _cell(self, at_ns: int, first_step: int) -> _Cell:
        assert self.origin is not None
        while (at_ns - self.origin) // self.width >= WINDOWS:
            self._double()
        at = max(0, (at_ns - self.origin) // self.width)
        self._made.pop(at, None)
        if at not in self.cells:
            self.cells[at] = _Cell(first_step)
        return self.cells[at]

    def _double(self) -> None:
        self.width *= 2
        self._made.clear()
        merged: dict[int, _Cell] = {}
        for at, cell in sorted(self.cells.items()):
            if at // 2 in merged:
                merged[at // 2].merge(cell)
            else:
                merged[at // 2] = cell
        self.cells = merged

    def windows(self, wall_offset_ns: int) -> tuple[Window, ...]:
        """All windows with steps, oldest first; only those that changed are rebuilt."""
        for at, cell in self.cells.items():
            if at not in self._made:
                self._made[at] = self._window(at, cell, wall_offset_ns)
        return tuple(self._made[at] for at in sorted(self._made))

    def _window(self, at: int, cell: _Cell, wall_offset_ns: int) -> Window:
        assert self.origin is not None
        tally, steady = cell.tally, cell.tally.times()
        rss = cell.mean("rss_bytes")
        memory = cell.last.get("device_memory_bytes", cell.mean("device_memory_bytes"))
        return Window(
            start=(self.origin + at * self.width + wall_offset_ns) / 1e9,
            seconds=self.width / 1e9,
            first_step=cell.first_step,
            steps=tally.steps,
            steps_seconds=tally.raw_ns / 1e9,
            step_p50=steady.p50,
            step_p95=steady.p95,
            step_max=steady.max,
            samples_per_second=tally.samples * 1e9 / tally.raw_ns if tally.samples and tally.raw_ns else None,
            phases=tally.shares(self.names),
            starved_ratio=tally.starved_ratio(),
            loss=cell.last.get("loss"),
            rss_bytes=int(rss) if rss is not None else None,
            device_memory_bytes=int(memory) if memory is not None else None,
            gpu_utilization_ratio=cell.mean("gpu_utilization_ratio"),
            sm_clock_hertz=cell.mean("sm_clock_hertz"),
            stalls=tuple(cell.stalls),
        )

    def trend(self) -> float | None:
        """Current throughput relative to the best sustained one, excluding stalls; None while too short.

        "Current" and "sustained" are medians of three consecutive stretches, so that one lucky or unlucky
        second does not make a trend.
        """
        rates = self._rates()
        if len(rates) < TREND_STRETCHES:
            return None
        triples = [sorted(rates[at : at + 3])[1] for at in range(len(rates) - 2)]
        best = max(triples)
        return min(1.0, triples[-1] / best) if best else None

    def _rates(self) -> list[float]:
        """Work per second of successive stretches, none of them too short."""
        rates: list[float] = []
        work = steps = took = 0
        tallies = [self.cells[at].tally for at in sorted(self.cells)]
        least = max(TREND_NS, sum([tally.raw_ns for tally in tallies]) // WINDOWS)
        samples = all(tally.samples for tally in tallies if tally.steps)
        for tally in tallies:
            work += tally.samples if samples else tally.steps
            steps += tally.steps
            took += tally.raw_ns - min(tally.raw_ns, tally.stall_ns)
            if steps >= TREND_STEPS and took >= least:
                rates.append(work * 1e9 / took)
                work = steps = took = 0
        return rates
