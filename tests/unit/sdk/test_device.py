"""Device times from injected events: what is read, when, and that nobody ever waits."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from sdk import TrainingMonitor, ring
from sdk.device import POOL, DeviceTimer, open_timer
from tests.rings import read_ring


class Stream:
    """A device that runs `lag` events behind the host; events happen at the times given."""

    def __init__(self, times_ms: Iterator[float], lag: int = 0) -> None:
        self.times = times_ms
        self.lag = lag
        self.recorded = 0
        self.made = 0

    def event(self) -> Event:
        self.made += 1
        return Event(self)


class Event:
    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.at = 0.0
        self.order = 0

    def record(self) -> None:
        self.at = next(self.stream.times)
        self.stream.recorded += 1
        self.order = self.stream.recorded

    def query(self) -> bool:
        return self.stream.recorded - self.order >= self.stream.lag

    def elapsed_time(self, end: Event) -> float:
        return end.at - self.at

    def synchronize(self) -> None:
        raise AssertionError("never wait for the device")


def pattern(busy: float, gap: float) -> Iterator[float]:
    now = 0.0
    while True:
        yield now
        yield now + busy
        now += busy + gap


def run(timer: DeviceTimer, steps: int) -> list[array[int]]:
    records = []
    for number in range(1, steps + 1):
        timer.begin()
        flight = timer.end()
        if flight is not None:
            flight.number = number
        record = array("Q", ring.EMPTY_RECORD)
        timer.collect(record)
        records.append(record)
    return records


def test_busy_and_starved() -> None:
    records = run(DeviceTimer(Stream(pattern(3.0, 1.0)).event), 10)
    assert [one[ring.W_DEVICE_SEQ] for one in records] == list(range(1, 11))
    assert all(one[ring.W_DEVICE_BUSY] == 3_000_000 for one in records)
    assert all(one[ring.W_DEVICE_STARVED] == 1_000_000 for one in records[1:])


def test_results_arrive_late_and_depth_shows_it() -> None:
    records = run(DeviceTimer(Stream(pattern(3.0, 0.0), lag=8).event), 30)
    assert records[2][ring.W_DEVICE_SEQ] == 0
    assert records[20][ring.W_DEVICE_SEQ] == 17
    assert records[20][ring.W_QUEUE_DEPTH] == 5
    assert records[20][ring.W_DEVICE_STARVED] == 0


def test_a_device_that_never_answers_costs_a_bounded_pool() -> None:
    stream = Stream(pattern(1.0, 0.0), lag=10**9)
    timer = DeviceTimer(stream.event)
    run(timer, POOL * 3)
    assert stream.made == 2 * POOL
    assert timer.skipped == POOL * 2


def test_events_are_reused() -> None:
    stream = Stream(pattern(1.0, 0.5), lag=4)
    run(DeviceTimer(stream.event), 5000)
    assert stream.made <= 16


def test_graph_capture_is_skipped() -> None:
    timer = DeviceTimer(Stream(pattern(1.0, 0.0)).event, capturing=lambda: True)
    records = run(timer, 5)
    assert all(one[ring.W_FLAGS] & ring.F_CAPTURED and not one[ring.W_DEVICE_SEQ] for one in records)
    assert timer.skipped == 5


def test_in_the_loop(gpumon_dir: Path) -> None:
    with TrainingMonitor() as m:
        m.recorder.device = DeviceTimer(Stream(pattern(2.0, 6.0)).event)
        for _ in m.loader(range(10)):
            m.lap("forward")
            m.step()
    assert m.path is not None
    records = read_ring(Path(m.path)).records
    late = [one.words for one in records if one.words[ring.W_DEVICE_SEQ]]
    assert len(late) >= 9
    assert late[-1][ring.W_DEVICE_BUSY] == 2_000_000 and late[-1][ring.W_DEVICE_STARVED] == 6_000_000


@pytest.mark.parametrize("device", [None, "cpu", "meta"])
def test_no_timer_without_a_device(device: str | None) -> None:
    assert open_timer(device) is None
