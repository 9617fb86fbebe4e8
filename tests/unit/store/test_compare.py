"""Comparison of constructed runs: verdicts, warnings, phases, predicted against realised."""

from __future__ import annotations

import msgspec
import pytest

from monitor.comparison.compare_runs import compare
from monitor.model.finding import Speedup
from monitor.model.run import Rank
from tests.unit.store.made import finding, record, run


def test_faster() -> None:
    found = compare(record(run()), record(run("b", rate=150.0, data=0.2)))
    assert found.verdict == "faster" and found.unit == "samples/s" and found.same_work
    assert found.speedup == pytest.approx(1.5, rel=0.01)
    assert found.low is not None and found.high is not None and found.low < 1.5 < found.high
    assert found.high - found.low < 0.05 and found.noise_floor < 0.05
    assert found.phases[0].name in ("data", "other")
    data = next(phase for phase in found.phases if phase.name == "data")
    assert data.saved_seconds == pytest.approx(0.03)
    assert found.a.epoch_seconds == pytest.approx(10.0) and found.a.gpu_utilization_ratio == pytest.approx(
        0.4
    )
    assert found.a.device_memory_bytes == 1 << 30


def test_slower_and_same() -> None:
    assert compare(record(run()), record(run("b", rate=80.0))).verdict == "slower"
    assert compare(record(run()), record(run("b", rate=100.3))).verdict == "same"
    noisy = compare(record(run(spread=0.6)), record(run("b", rate=104.0, spread=0.6)))
    assert noisy.verdict in ("same", "unsure") and noisy.noise_floor > 0.04


def test_steps_when_there_are_no_samples() -> None:
    bare = [msgspec.structs.replace(window, samples_per_second=None) for window in run().timeline]
    without = run(samples_per_second=None, timeline=tuple(bare))
    found = compare(record(without), record(run("b", rate=300.0)))
    assert found.unit == "steps/s" and found.speedup == pytest.approx(1.0)


def test_too_short_is_unsure_and_never_an_error() -> None:
    short = run("b", rate=101.0, timeline=run().timeline[:2])
    assert compare(record(run()), record(short)).low is None
    empty = run("c", timeline=(), phases=(), samples_per_second=None, iterations_per_second=None, ranks=())
    found = compare(record(empty), record(empty))
    assert found.speedup is None and found.verdict == "unsure"


def test_other_work_is_said() -> None:
    other = run(
        "b", batch_size=64, script="other.py", state="killed", lost=100,
        config={"model": {"class": "Big", "parameters": 10}, "loader": {"dataset_len": 5}},
    )  # fmt: skip
    found = compare(record(run()), record(other))
    kinds = {one.kind for one in found.differences}
    assert kinds == {"batch_size", "script", "model", "dataset_size"} and not found.same_work
    assert [one.kind for one in found.troubles] == ["steps_not_seen", "killed"]
    words = " | ".join(found.warnings)
    for part in ("the batch size differs: 32 → 64", "the model differs: Net → Big", "100 of 400 steps"):
        assert part in words
    unknown = run("b", config={}, batch_size=None)
    assert compare(record(run()), record(unknown)).differences == (), (
        "what one side does not know is no difference"
    )


def test_arguments_are_said_as_they_were_given() -> None:
    one = run("a", script="t.py", command="python t.py 90 --lr 1")
    two = run("b", script="t.py", command="python t.py 500 --lr 2")
    assert compare(record(one), record(two)).warnings[0] == "the arguments differ: 90 --lr 1 → 500 --lr 2"


def test_samples_of_all_ranks_count() -> None:
    two = run("b", ranks=tuple(Rank(at, "ended", 1, samples=4000, device="cuda:0") for at in range(2)))
    found = compare(record(run()), record(two))
    assert found.speedup == pytest.approx(2.0) and found.differences[0].kind == "ranks"


def test_what_was_predicted_of_all_together_counts_only_when_all_are_gone() -> None:
    first, second = finding("a.a", 1.2, 1.4, 1.6), finding("b.b", 1.2, 1.4, 1.6)
    told = run(combined=Speedup(1.5, 2.1, 2.6))
    assert compare(record(told, first, second), record(run("b"))).predicted_together == told.combined
    assert compare(record(told, first, second), record(run("b"), second)).predicted_together is None
