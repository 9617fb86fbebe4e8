"""The launch queue over time."""

from __future__ import annotations

import pytest

from monitor.traces import analyse
from monitor.traces.queues import PARTS
from tests.unit.traces.maker import Maker


def test_the_queue_by_hand() -> None:
    maker = Maker()
    maker.launch(0, 100, 50)  # queued from 0 to 100
    maker.launch(20, 150, 50)  # from 20 to 150
    maker.launch(180, 200, 10)  # from 180 to 200
    queue = analyse(maker.trace()).devices[0].queue
    assert queue is not None
    # 1 at 0, 2 at 20, 1 at 100, 0 at 150, 1 at 180, 0 at 200
    assert queue.max == 2
    assert queue.mean == pytest.approx(5 / 6)
    assert queue.median == 1
    assert queue.time_mean == pytest.approx((20 + 2 * 80 + 50 + 20) / 200)
    assert queue.empty_ratio == pytest.approx(30 / 200)


def test_the_queue_over_time_has_the_same_mean() -> None:
    maker = Maker()
    for at in range(37):
        maker.launch(at * 13, 40 + at * 29, 29)
    queue = analyse(maker.trace()).devices[0].queue
    assert queue is not None
    assert len(queue.over_time) == PARTS
    assert sum(queue.over_time) / PARTS == pytest.approx(queue.time_mean, abs=1e-3)


def test_one_call_may_launch_many_kernels_as_a_graph_does() -> None:
    maker = Maker()
    maker.launch(0, 10, 5, call="cudaGraphLaunch")
    for at in range(3):
        args = {"stream": 7, "device": 0, "correlation": 1}
        maker.add("kernel", "captured", 20 + at * 10, 5, pid=0, tid=7, args=args)
    device = analyse(maker.trace()).devices[0]
    assert device.queue is not None
    assert device.queue.max == 4
    assert device.launches is not None
    assert device.launches.period_median_seconds is None
    assert device.launch_bound is None


def test_streams_have_queues_of_their_own() -> None:
    maker = Maker()
    maker.launch(0, 10, 5, stream=7)
    maker.kernel(0, 5, stream=9)
    first, second = analyse(maker.trace()).devices[0].streams
    assert first.queue is not None
    assert second.queue is None
