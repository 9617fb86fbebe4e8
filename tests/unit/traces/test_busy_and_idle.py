"""Busy and idle time: by hand on small traces, and by counting on random ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.traces import analyse
from tests.unit.traces.maker import Maker, launch_bound

US = 1e-6


def test_overlapping_streams_count_once() -> None:
    maker = Maker()
    maker.kernel(0, 10, stream=7)
    maker.kernel(5, 10, stream=8)
    maker.add("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 12, 8, pid=0, tid=9, args={"stream": 9})
    maker.kernel(30, 10, stream=7)
    time = analyse(maker.trace()).devices[0].temporal
    assert time.span_seconds == pytest.approx(40 * US)
    assert time.compute_seconds == pytest.approx(25 * US)  # 0-15 and 30-40
    assert time.non_compute_seconds == pytest.approx(5 * US)  # the copy alone, 15-20
    assert time.idle_seconds == pytest.approx(10 * US)  # 20-30


def test_the_categories_of_a_stream() -> None:
    maker = Maker()
    maker.launch(0, 10, 10)
    maker.launch(30, 40, 10)  # launched at 30, after 20: the host was late, 20 idle
    maker.launch(45, 60, 10)  # launched at 45, before 50: a kernel wait of 10
    maker.launch(50, 170, 10)  # launched in time, 100 idle: something else
    (stream,) = analyse(maker.trace()).devices[0].streams
    assert stream.idle.host_wait_seconds == pytest.approx(20 * US)
    assert stream.idle.kernel_wait_seconds == pytest.approx(10 * US)
    assert stream.idle.other_seconds == pytest.approx(100 * US)


def test_another_stream_at_work_is_no_idle_device() -> None:
    maker = Maker()
    maker.launch(0, 10, 10, stream=7)
    maker.launch(1, 15, 100, stream=8)
    maker.launch(80, 90, 10, stream=7)
    device = analyse(maker.trace()).devices[0]
    assert device.temporal.idle_seconds == 0
    assert device.streams[0].idle.host_wait_seconds == pytest.approx(70 * US)


def test_causes_one_after_another() -> None:
    """Each gap has one cause, by construction."""
    maker = Maker()
    maker.launch(0, 10, 90)  # until 100
    maker.note("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 120, 400)
    maker.launch(540, 550, 50)  # idle 100-550: data 400, launching 50
    maker.copy(650, 700, 100, "HtoD (Pageable -> Device)", call_took=200)  # idle 600-700: 50 in the call
    maker.call("cudaStreamSynchronize", 860, 500)
    maker.launch(852, 900, 400)  # idle 800-900 before it; ends 1300 in the sync
    maker.launch(1370, 1400, 100)  # idle 1300-1400 after the sync
    maker.launch(5_000, 5_010, 10)  # idle 1500-5010, the host in nothing
    causes = analyse(maker.trace()).devices[0].causes
    assert causes.data_seconds == pytest.approx(400 * US)
    assert causes.copy_seconds == pytest.approx((50 + 50) * US)  # 650-700 and 800-850
    assert causes.sync_seconds == pytest.approx(100 * US)
    assert causes.outside_seconds == pytest.approx(3500 * US)
    assert causes.launch_seconds == pytest.approx((50 + 50 + 50 + 10) * US)
    assert causes.kernel_wait_seconds == causes.other_seconds == 0


def test_a_sync_costs_no_more_than_the_host_waited_in_it() -> None:
    maker = Maker()
    maker.launch(0, 10, 90)
    maker.call("cudaDeviceSynchronize", 70, 40)  # waits from 70 to 110
    maker.op("aten::add", 110, 900)
    maker.launch(1000, 1010, 90)  # without the sync it would begin 40 earlier, not 910
    report = analyse(maker.trace())
    assert report.devices[0].causes.sync_seconds == pytest.approx(40 * US)
    assert report.syncs[0].wait_seconds == pytest.approx(40 * US)
    assert report.syncs[0].idle_after_seconds == pytest.approx(40 * US)


def test_a_sync_that_leaves_work_in_the_queue_costs_nothing() -> None:
    maker = Maker()
    maker.launch(0, 10, 100, stream=7)
    maker.launch(2, 110, 500, stream=7)
    maker.call("cudaEventSynchronize", 10, 100)
    maker.launch(150, 610, 10, stream=7)
    report = analyse(maker.trace())
    assert report.syncs[0].wait_seconds == pytest.approx(100 * US)
    assert report.syncs[0].idle_after_seconds == 0


def test_without_launches_nothing_is_blamed_on_the_host() -> None:
    maker = Maker()
    maker.kernel(0, 10)
    maker.kernel(15, 10)
    maker.kernel(500, 10)
    device = analyse(maker.trace()).devices[0]
    assert device.idle.host_wait_seconds == 0
    assert device.idle.kernel_wait_seconds == pytest.approx(5 * US)
    assert device.idle.other_seconds == pytest.approx(475 * US)
    assert device.queue is None
    assert device.launches is None
    assert device.launch_bound is None


def test_devices_are_apart_the_busiest_first() -> None:
    maker = Maker()
    maker.kernel(0, 10, device=0)
    maker.kernel(90, 10, device=0)
    maker.kernel(0, 70, device=1)
    devices = analyse(maker.trace()).devices
    assert [device.device for device in devices] == [1, 0]
    assert devices[1].temporal.idle_ratio == pytest.approx(0.8)


def test_launch_bound_by_construction() -> None:
    maker = Maker()
    launch_bound(maker, kernels=100, every=100, took=20)
    device = analyse(maker.trace()).devices[0]
    assert device.launch_bound is True
    assert device.temporal.idle_ratio == pytest.approx(0.8, abs=0.01)
    assert device.causes.launch_seconds == pytest.approx(device.temporal.idle_seconds)
    assert device.launches is not None
    assert device.launches.late_ratio == 1.0
    assert device.launches.period_median_seconds == pytest.approx(100 * US)
    assert device.launches.kernel_median_seconds == pytest.approx(20 * US)
    assert device.launches.delay_median_seconds == pytest.approx(10 * US)


Program = list[tuple[int, int, int, int, bool]]
# Random programs: (stream, wait before the launch, host time of the launch, kernel length, sync afterwards?).
programs = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 300), st.integers(1, 20), st.integers(1, 200), st.booleans()),
    min_size=1,
    max_size=40,
)


def run(program: Program) -> tuple[Maker, list[tuple[int, int, int]]]:
    """A host that launches in order, device streams that run in order; returns (stream, begin, end)."""
    maker = Maker()
    ends: dict[int, int] = {}
    host, kernels = 0, []
    for stream, wait, calling, took, sync in program:
        host += wait
        begin = max(host + calling, ends.get(stream, 0))
        maker.launch(host, begin, took, stream=stream, call_took=calling)
        ends[stream] = begin + took
        kernels.append((stream, begin, begin + took))
        host += calling
        if sync:
            until = max(host, *ends.values())
            maker.call("cudaDeviceSynchronize", host, until - host)
            host = until
    return maker, kernels


@settings(deadline=None)
@given(programs)
def test_busy_is_the_union_of_all_streams(program: Program) -> None:
    maker, kernels = run(program)
    moments = {at for _, begin, end in kernels for at in range(begin, end)}
    time = analyse(maker.trace()).devices[0].temporal
    assert time.busy_seconds == pytest.approx(len(moments) * US)
    assert time.span_seconds == pytest.approx((max(moments) + 1 - min(moments)) * US)
    assert time.compute_ratio + time.non_compute_ratio + time.idle_ratio == pytest.approx(1.0)


@settings(deadline=None)
@given(programs)
def test_every_idle_moment_has_one_category_and_one_cause(
    program: Program,
) -> None:
    maker, kernels = run(program)
    device = analyse(maker.trace()).devices[0]
    whole = pytest.approx(device.temporal.idle_seconds, abs=1e-12)
    assert sum(getattr(device.idle, name) for name in device.idle.__struct_fields__) == whole
    assert sum(getattr(device.causes, name) for name in device.causes.__struct_fields__) == whole
    assert min(getattr(device.causes, name) for name in device.causes.__struct_fields__) >= 0
    for stream in device.streams:
        own = [(begin, end) for number, begin, end in kernels if number == stream.stream]
        idle = own[-1][1] - own[0][0] - sum(end - begin for begin, end in own)
        found = sum(getattr(stream.idle, name) for name in stream.idle.__struct_fields__)
        assert found == pytest.approx(idle * US, abs=1e-12)


def without_syncs(program: Program) -> float:
    _, kernels = run([(*one[:4], False) for one in program])
    return max(end for *_, end in kernels) - min(begin for _, begin, _ in kernels)


@settings(deadline=None)
@given(programs)
def test_the_replay_without_syncs_is_bounded(program: Program) -> None:
    """Bounded by the host's waits and by the idle time: no promise that streams might overlap more."""
    report = analyse(run(program)[0].trace())
    device = report.devices[0]
    assert device.savings.sync_seconds <= sum(site.wait_seconds for site in report.syncs) + 1e-12
    assert device.savings.sync_seconds <= device.temporal.idle_seconds + 1e-12


@settings(deadline=None)
@given(programs)
def test_the_replay_bounds_what_the_same_program_saves_without_syncs(
    program: Program,
) -> None:
    alone: Program = [(0, wait, calling, took, sync) for _, wait, calling, took, sync in program]
    device = analyse(run(alone)[0].trace()).devices[0]
    saved = device.temporal.span_seconds - without_syncs(alone) * US
    assert saved <= device.savings.sync_seconds + 1e-12


@settings(deadline=None)
@given(programs)
def test_the_replay_is_exact_where_every_launch_takes_the_same_time(
    program: Program,
) -> None:
    steady = [(0, wait, 5, took, sync) for _, wait, _, took, sync in program]
    device = analyse(run(steady)[0].trace()).devices[0]
    saved = device.temporal.span_seconds - without_syncs(steady) * US
    assert device.savings.sync_seconds == pytest.approx(max(0.0, saved), abs=1e-12)
