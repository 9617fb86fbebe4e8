"""What is said, and what is not, about traces whose cause is known by construction."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.model.finding import Finding
from monitor.traces import TraceReport, analyse, diagnose
from monitor.traces.diagnosis import capped
from tests.unit.traces.maker import Maker, busy, launch_bound

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)"


def found(*makers: Maker) -> list[Finding]:
    return diagnose([analyse(maker.trace(), rank=rank) for rank, maker in enumerate(makers)])


def test_a_healthy_trace_says_so_and_promises_nothing() -> None:
    maker = Maker()
    busy(maker)
    (healthy,) = found(maker)
    assert (healthy.id, healthy.severity, healthy.speedup) == ("trace.healthy", "healthy", None)


def test_launch_bound() -> None:
    maker = Maker()
    launch_bound(maker, every=100, took=20)
    (finding,) = found(maker)
    assert (finding.id, finding.severity) == ("trace.launch_bound", "warning")
    assert finding.speedup is not None
    assert finding.speedup.high == pytest.approx(5.0, rel=0.01)
    assert finding.speedup.likely == 1.0  # the trace does not show how much of it would go


def test_waiting_for_data() -> None:
    maker = Maker()
    end = 0.0
    for _ in range(4):
        maker.note("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", end, 2000)
        end = busy(maker, kernels=20, begin=end + 2000)
    (finding, *_) = found(maker)
    assert finding.id == "trace.input_wait"
    assert finding.speedup is not None
    # The first wait is before the first kernel: three waits of 2000 in 14,200 µs.
    assert finding.speedup.high == pytest.approx(14_200 / 8_200, rel=0.02)


def test_reading_a_value_each_step() -> None:
    maker = Maker()
    end = 0.0
    for _ in range(10):
        begin = end
        end = busy(maker, kernels=10, begin=begin)
        maker.op("aten::item", begin + 20, end - begin)
        maker.copy(begin + 30, end, 2, "DtoH (Device -> Pageable)", call_took=end - begin - 10)
        end += 200
    (finding, *_) = found(maker)
    assert finding.id == "trace.sync"
    assert "aten::item" in finding.title
    assert finding.speedup is not None
    assert 1.1 < finding.speedup.high < 1.3


def test_pageable_copies() -> None:
    maker = Maker()
    end = 0.0
    for _ in range(4):
        maker.copy(end, end + 1000, 100, "HtoD (Pageable -> Device)", call_took=1200, bytes=1 << 20)
        end = busy(maker, kernels=20, begin=end + 1200)
    (finding, *_) = found(maker)
    assert finding.id == "trace.blocking_copies"
    assert finding.evidence["pageable_bytes_per_second"] == pytest.approx((1 << 20) / 100e-6)


def test_outside_operators() -> None:
    maker = Maker()
    end = busy(maker, kernels=100)
    busy(maker, kernels=100, begin=end + 5000)
    (finding, *_) = found(maker)
    assert finding.id == "trace.outside_operators"
    assert "with_stack" in finding.remedy.change
    maker.function("train.py(10): main", 0, 50_000)
    maker.function("train.py(90): draw_plots", end - 1000, 6000)
    (finding, *_) = found(maker)
    assert finding.title.endswith("most in train.py(90): draw_plots")
    assert "with_stack" not in finding.remedy.change


def test_exposed_communication() -> None:
    maker = Maker(rank=0, world=2)
    end = 0.0
    for _ in range(4):
        begin = end
        end = busy(maker, kernels=20, begin=begin)
        maker.launch(begin + 25, end, 1000, stream=20, name=REDUCE)
        end += 1000
    (finding, *_) = found(maker)
    assert finding.id == "trace.exposed_communication"
    assert finding.speedup is not None
    assert finding.speedup.high == pytest.approx(12_200 / 8_200, rel=0.02)


def test_a_gap_nobody_is_to_blame_for() -> None:
    maker = Maker()
    for at in range(60):
        maker.kernel(at * 100, 60)
    (finding,) = found(maker)
    assert finding.id == "trace.idle_unexplained"
    assert "ProfilerActivity.CPU" in finding.remedy.change


def test_a_trace_of_a_few_kernels_names_no_gain() -> None:
    maker = Maker()
    launch_bound(maker, kernels=10)
    (finding,) = found(maker)
    assert finding.speedup is None
    assert "too short" in finding.why


def test_matrix_kernels_without_tensor_cores_are_a_hint_without_a_gain() -> None:
    maker = Maker()
    for at in range(100):
        maker.launch(at, 50 + at * 100, 100, name="volta_sgemm_64x64_nt")
    healthy, hint = found(maker)
    assert (healthy.id, hint.id) == ("trace.healthy", "trace.tensor_cores_unused")
    assert hint.speedup is None


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_gain_is_capped_by_the_share_it_removes(share: float) -> None:
    speedup = capped(share, whole=True)
    assert speedup is not None
    assert speedup.high == pytest.approx(1 / (1 - share))
    assert capped(1.0, whole=True) is None


@given(st.integers(10, 300), st.integers(5, 300), st.booleans(), st.booleans())
def test_no_finding_promises_more_than_all_idle_time_and_exposed_communication(
    every: int, took: int, sync: bool, data: bool
) -> None:
    maker = Maker()
    host = end = 0.0
    for at in range(60):
        if data and at % 10 == 0:
            maker.note("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", host, 500)
            host += 500
        begin = max(host + 5, end)
        maker.launch(host, begin, took)
        end = begin + took
        host += every
        if sync and at % 5 == 0:
            maker.call("cudaStreamSynchronize", host, max(1.0, end - host))
            host = max(host + 1, end)
    report = analyse(maker.trace())
    idle = report.devices[0].temporal.idle_ratio
    for finding in diagnose([report]):
        if finding.speedup is not None:
            assert 1.0 <= finding.speedup.low <= finding.speedup.likely <= finding.speedup.high
            assert finding.speedup.high <= 1 / (1 - idle) + 1e-9


def rank_of(number: int, lengths: list[float], *, world: int = 3) -> Maker:
    """Computes for 500, then runs a collective that takes as long as this rank waits in it."""
    maker = Maker(rank=number, world=world)
    at = 0.0
    for length in lengths:
        maker.launch(at, at + 10, 490)
        maker.launch(at + 5, at + 500, length, stream=20, name=REDUCE)
        at += 500 + length
    for filler in range(50):
        maker.launch(at, at + 10 + filler, 1)
    return maker


def test_the_late_rank_is_the_one_whose_collectives_are_shortest() -> None:
    findings = found(rank_of(0, [300, 310]), rank_of(1, [100, 100]), rank_of(2, [250, 240]))
    late = next(finding for finding in findings if finding.id == "trace.late_rank")
    assert late.rank == 1
    assert late.evidence["last_in"] == 2
    # Rank 2 waits least for it: 150 + 140.
    assert late.evidence["wait_seconds"] == pytest.approx(290e-6)


def test_equal_ranks_have_no_late_one() -> None:
    findings = found(*(rank_of(number, [100, 100]) for number in range(3)))
    assert all(finding.id != "trace.late_rank" for finding in findings)


def test_ranks_that_do_not_match_are_not_compared() -> None:
    findings = found(rank_of(0, [300, 310, 5]), rank_of(1, [100, 100]))
    assert all(finding.id != "trace.late_rank" for finding in findings)


def test_a_cause_is_told_of_the_rank_it_costs_most() -> None:
    healthy, slow = Maker(rank=0, world=2), Maker(rank=1, world=2)
    busy(healthy)
    launch_bound(slow)
    (finding, *_) = found(healthy, slow)
    assert (finding.id, finding.rank) == ("trace.launch_bound", 1)


def test_the_rank_is_the_place_in_the_list_when_the_trace_has_none() -> None:
    maker = Maker()
    busy(maker)
    report: TraceReport = analyse(maker.trace(), rank=5)
    assert (report.rank, report.rank_known) == (5, False)
