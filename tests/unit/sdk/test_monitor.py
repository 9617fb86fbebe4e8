"""The public API: the classic calls, the modern ones, and what they leave in the ring."""

from __future__ import annotations

import gc
import itertools
import threading
import time
from pathlib import Path

import pytest

import sdk
from sdk import TrainingMonitor, ring
from sdk.core import NATIVE
from tests.rings import RingFile, bits_float, read_ring


def spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def ring_of(monitor: TrainingMonitor) -> RingFile:
    assert monitor.path is not None
    return read_ring(Path(monitor.path))


def test_exported_names() -> None:
    assert sdk.__all__ == ["Summary", "TrainingMonitor", "__version__"]


def test_classic_calls(gpumon_dir: Path) -> None:
    monitor = TrainingMonitor()
    monitor.start_monitoring()
    for _ in range(20):
        time.sleep(0.001)
        monitor.log_iteration(0.001)
    monitor.stop_monitoring()
    summary = monitor.get_summary()
    assert summary["steps"] == summary["total_iterations"] == 20
    assert summary["avg_iteration_time"] > 0.0009
    assert "20 in" in str(summary) and "it/s" in str(summary)
    assert len(summary) == len(dict(summary))
    found = ring_of(monitor)
    assert found.header.head == 20
    assert found.meta["way"] == "seed"
    assert found.header.state == ring.S_ENDED


def test_classic_calls_see_what_is_between(gpumon_dir: Path) -> None:
    monitor = TrainingMonitor()
    monitor.start_monitoring()
    for _ in range(12):
        time.sleep(0.004)
        monitor.log_iteration(0.001)
    monitor.stop_monitoring()
    assert monitor.get_summary()["phases"]["between"] > 0.5


def test_modern_loop(gpumon_dir: Path) -> None:
    with TrainingMonitor("net", batch_size=8, tokens_per_step=16) as m:
        for _ in range(2):
            for _ in m.loader(range(10)):
                with m.phase("forward"):
                    spin(0.0005)
                m.lap("backward")
                spin(0.0005)
                m.step(loss=0.25, accuracy=0.5)
            with m.phase("validate"):
                spin(0.005)
    found = ring_of(m)
    assert found.header.head == 20
    assert [one.number for one in found.records] == list(range(1, 21))
    assert [one.epoch for one in found.records] == [1] * 10 + [2] * 10
    assert found.records[10].flags & ring.F_EPOCH_START
    assert all(one.samples == 8 and one.words[ring.W_TOKENS] == 16 for one in found.records)
    assert found.records[9].phases["validate"] >= 0.005, "between the epochs, it belongs to the last step"
    assert found.records[5].phases["forward"] >= 0.0005
    assert found.records[5].phases["backward"] >= 0.0005
    assert found.scalars["accuracy"] == 0.5
    assert bits_float(found.records[0].words[ring.W_LOSS]) == 0.25


def test_begin_to_begin(gpumon_dir: Path) -> None:
    """A record's end is the next one's begin, and phases never sum to more than the record."""
    with TrainingMonitor() as m:
        for _ in m.loader(range(15)):
            m.lap("forward")
            m.step()
            spin(0.0003)
    records = ring_of(m).records
    for one, following in itertools.pairwise(records):
        assert one.words[ring.W_END] == following.words[ring.W_BEGIN]
    assert all(sum(one.phases.values()) <= one.seconds + 1e-9 for one in records)
    assert records[5].phases["between"] >= 0.0003


def test_what_comes_after_the_last_step_is_not_between_steps(gpumon_dir: Path) -> None:
    with TrainingMonitor() as m:
        for _ in m.loader(range(5)):
            m.step()
        with m.phase("validate"):
            spin(0.002)
        validated = time.monotonic_ns()
        time.sleep(0.001)
    last = ring_of(m).records[-1]
    assert last.phases["validate"] >= 0.002 and last.words[ring.W_END] <= validated


def test_nested_phases_are_exclusive(gpumon_dir: Path) -> None:
    with TrainingMonitor() as m:
        for _ in m.loader(range(8)):
            with m.phase("forward"), m.phase("log"), m.phase("sync"):
                spin(0.003)
            m.step()
    best = min(ring_of(m).records, key=lambda one: one.phases["forward"]).phases
    assert best["forward"] < best["sync"], "the inner 3 ms are not in the outer phase"


def test_steps_without_marks(gpumon_dir: Path) -> None:
    with TrainingMonitor() as m:
        for _ in range(10):
            spin(0.001)
            m.step()
    records = ring_of(m).records
    assert len(records) == 10
    assert all(one.seconds >= 0.001 and not one.phases for one in records[2:])


def test_own_phases_and_their_limit(gpumon_dir: Path) -> None:
    with TrainingMonitor() as m:
        for _ in m.loader(range(3)):
            for name in ("a", "b", "c", "d", "e", "f"):
                with m.phase(name):
                    spin(0.0002)
            m.step()
    found = ring_of(m)
    assert found.meta["phases"] == ["a", "b", "c", "d"]
    assert set(found.records[1].phases) >= {"a", "b", "c", "d"}
    assert found.meta["folded_phases"] == ["e", "f"]


def test_exception_inside_a_phase_propagates_and_closes_it(gpumon_dir: Path) -> None:
    monitor = TrainingMonitor()
    with pytest.raises(KeyError), monitor as m:
        for number in m.loader(range(5)):
            with m.phase("forward"):
                if number == 3:
                    raise KeyError("user")
            m.step()
    found = ring_of(monitor)
    assert found.header.state == ring.S_FAILED
    assert found.header.head == 3
    assert not monitor.recorder.depth


def test_interrupt_inside_a_phase(gpumon_dir: Path) -> None:
    monitor = TrainingMonitor()
    with pytest.raises(KeyboardInterrupt), monitor as m:
        for _ in m.loader(range(5)):
            with m.phase("backward"):
                raise KeyboardInterrupt
    assert ring_of(monitor).header.state == ring.S_INTERRUPTED


def test_loader_errors_are_the_users(gpumon_dir: Path) -> None:
    def broken() -> object:
        yield 1
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"), TrainingMonitor() as m:
        for _ in m.loader(broken()):  # type: ignore[arg-type]
            m.step()


def test_restarted_and_reentered(gpumon_dir: Path) -> None:
    monitor = TrainingMonitor("twice")
    with monitor:
        monitor.start_monitoring()
        monitor.step()
    first = monitor.path
    with monitor:
        monitor.step()
        monitor.step()
    assert monitor.path != first
    assert ring_of(monitor).header.head == 2


def test_two_monitors_at_once(gpumon_dir: Path) -> None:
    with TrainingMonitor("a") as a, TrainingMonitor("b") as b:
        for _ in range(4):
            a.step()
            b.step()
            b.step()
    assert ring_of(a).header.head == 4
    assert ring_of(b).header.head == 8


def test_same_name_same_run_id_gets_a_number(gpumon_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUMON_RUN_ID", "given")
    with TrainingMonitor() as a, TrainingMonitor() as b:
        assert (a.run_id, b.run_id) == ("given", "given-2")


def test_other_threads_do_no_harm(gpumon_dir: Path) -> None:
    with TrainingMonitor() as m:
        stop = threading.Event()

        def meddle() -> None:
            while not stop.is_set():
                m.lap("forward")
                with m.phase("log"):
                    m.step(1.0)

        thread = threading.Thread(target=meddle)
        thread.start()
        for _ in m.loader(range(200)):
            with m.phase("forward"):
                spin(0.00005)
            m.step()
        stop.set()
        thread.join(5)
    found = ring_of(m)
    assert found.header.head == 200
    assert m.get_summary()["errors"] == 0


def test_bad_values_never_raise(gpumon_dir: Path) -> None:
    with TrainingMonitor() as m, pytest.warns(RuntimeWarning, match="training continues"):
        m.step(loss="a word")
        m.step(loss=object())
        m.log_iteration("soon")  # type: ignore[arg-type]
    assert m.get_summary()["errors"] == 3


def test_disabled(gpumon_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUMON_DISABLE", "1")
    with TrainingMonitor() as m:
        m.step()
    assert m.path is None
    assert m.get_summary()["steps"] == 1
    assert not list(gpumon_dir.iterdir())


def test_what_is_switched_off_is_no_warning(
    gpumon_dir: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setenv("GPUMON_DISABLE", "1")
    with TrainingMonitor() as m:
        m.step()
    assert not recwarn.list and "GPUMON_DISABLE" in m.get_summary()["inactive"]


def test_every_call_is_harmless_before_the_start_and_after_the_end(gpumon_dir: Path) -> None:
    def use(m: TrainingMonitor) -> None:
        for _ in m.loader([1, 2]):
            with m.phase("forward"):
                m.lap("backward")
            m.step(0.5, accuracy=1.0)
        m.log_iteration(0.1)
        m.epoch()
        m.scalars({"accuracy": 0.5})

    monitor = TrainingMonitor("idle")
    use(monitor)
    assert (monitor.path, monitor.run_id, monitor.config) == (None, None, {})
    assert monitor.get_summary()["steps"] == 0 and "idle" in str(monitor.get_summary())
    monitor.stop_monitoring()
    with monitor as m:
        m.step()
    use(monitor)
    assert monitor.get_summary()["steps"] == 1 and ring_of(monitor).header.head == 1
    assert monitor.get_summary()["errors"] == 0


def test_unusable_directory_says_so_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("GPUMON_DIR", str(blocker / "rings"))
    with pytest.warns(RuntimeWarning, match="not recorded") as caught, TrainingMonitor() as m:
        m.step()
    assert len(caught) == 1
    assert m.get_summary()["steps"] == 1
    assert "not recorded" in str(m.get_summary())


def test_wall_clock_going_backwards(gpumon_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Durations come from the monotonic clock only: a wall clock set back changes no figure."""
    wall = iter(range(10**9, 0, -1000))
    monkeypatch.setattr(time, "time", lambda: float(next(wall)))
    monkeypatch.setattr(time, "time_ns", lambda: next(wall) * 10**9)
    began = time.monotonic()
    with TrainingMonitor() as m:
        for _ in range(10):
            m.step()
    took = time.monotonic() - began
    assert all(0 <= one.seconds <= took for one in ring_of(m).records)
    assert 0 < m.get_summary()["seconds"] <= took


@pytest.mark.skipif(not NATIVE, reason="only the C core watches them")
def test_garbage_collection_is_seen(gpumon_dir: Path) -> None:
    with TrainingMonitor() as m:
        for number in m.loader(range(6)):
            if number == 4:
                gc.collect()
            m.step()
    words = [one.words[ring.W_GC] for one in ring_of(m).records]
    assert words[4] > 0


def test_warm_up_is_marked_and_left_out(gpumon_dir: Path) -> None:
    with TrainingMonitor() as m:
        for number in m.loader(range(20)):
            spin(0.03 if number == 0 else 0.001)
            m.step()
    records = ring_of(m).records
    assert records[0].flags & ring.F_WARMUP and records[1].flags & ring.F_WARMUP
    assert not records[-1].flags & ring.F_WARMUP
    steady = [one.seconds for one in records if not one.flags & (ring.F_WARMUP | ring.F_SAMPLED)]
    summary = m.get_summary()
    assert summary["steady_steps"] == len(steady) and summary["max_iteration_time"] <= max(steady)


def test_own_cost_is_reported(gpumon_dir: Path) -> None:
    began = time.perf_counter()
    with TrainingMonitor() as m:
        for _ in m.loader(range(50)):
            m.lap("forward")
            spin(0.0005)
            m.step()
    took = time.perf_counter() - began  # the samples of so short a run are looked up after its end
    summary = m.get_summary()
    assert 0 < summary["overhead_seconds"] < took
    assert summary["overhead_ratio"] is None, "a run of some milliseconds has no typical share"
    assert ring_of(m).header.overhead_ns > 0
    cost = next(line for line in str(summary).splitlines() if "gpumon cost" in line)
    assert cost.endswith("in total") and "%" not in cost


def test_summary_names_the_bottleneck(gpumon_dir: Path) -> None:
    def slow() -> object:
        for number in range(12):
            time.sleep(0.003)
            yield number

    with TrainingMonitor() as m:
        for _ in m.loader(slow()):  # type: ignore[arg-type]
            m.lap("forward")
            m.step()
    summary = m.get_summary()
    assert summary["phases"]["data"] > 0.5
    assert summary["bottleneck"].startswith("data takes")
    assert summary["note"] == "phases are wall time (CPU-only run)"


def test_loader_keeps_length_and_attributes() -> None:
    class Loader(list[int]):
        batch_size = 4

    wrapped = TrainingMonitor().loader(Loader([1, 2, 3]))
    assert len(wrapped) == 3  # type: ignore[arg-type]
    assert wrapped.batch_size == 4  # type: ignore[attr-defined]
    assert list(wrapped) == [1, 2, 3]


def test_late_reader_loses_nothing_and_a_lapped_one_counts(
    gpumon_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUMON_RING_BYTES", "1")
    with TrainingMonitor() as m:
        for _ in range(ring.INITIAL_SLOTS + 500):
            m.step()
    found = ring_of(m)
    assert found.lost == 500
    assert len(found.records) == ring.INITIAL_SLOTS
