"""Comparison of constructed runs: verdicts, warnings, phases, predicted against realised."""

from __future__ import annotations

import msgspec
import pytest

from monitor.compare import compare
from monitor.snapshot import Rank
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
    warnings = " | ".join(compare(record(run()), record(other)).warnings)
    for part in (
        "batch size differs: 32 → 64",
        "script",
        "model differs: Net → Big",
        "size",
        "killed",
        "not seen",
    ):
        assert part in warnings
    unknown = run("b", config={}, batch_size=None)
    assert compare(record(run()), record(unknown)).warnings == (), (
        "what one side does not know is no difference"
    )


def test_samples_of_all_ranks_count() -> None:
    two = run("b", ranks=tuple(Rank(at, "ended", 1, samples=4000, device="cuda:0") for at in range(2)))
    found = compare(record(run()), record(two))
    assert found.speedup == pytest.approx(2.0) and "number of ranks" in found.warnings[0]


def test_predicted_against_realised() -> None:
    gone, stays = finding("input.no_workers", 1.3, 1.6, 2.0), finding("compute.amp_off", 1.1, 1.2, 1.3)
    new = finding("memory.leak", 1.0, 1.0, 1.0, "b")
    found = compare(record(run(), gone, stays), record(run("b", rate=150.0), stays, new))
    (one,) = found.realised
    assert one.id == "input.no_workers" and one.realised == pytest.approx(1.5, rel=0.01)
    assert one.inside is True and not one.shared
    assert found.remaining == ("compute.amp_off",) and found.new == ("memory.leak",)


def test_a_finding_that_went_along_gets_no_credit() -> None:
    """GIVEN slow samples without workers WHEN samples became cheap THEN workers gained nothing."""
    workers, samples = (
        finding("input.no_workers", 1.3, 2.0, 2.5),
        finding("input.slow_getitem", 2.0, 3.0, 4.0),
    )
    same = {"loader": {"num_workers": 0}}
    found = compare(record(run(config=same), workers, samples), record(run("b", rate=290.0, config=same)))
    parts = {one.id: one for one in found.realised}
    assert parts["input.no_workers"].applied is False and parts["input.no_workers"].realised is None
    assert parts["input.slow_getitem"].realised == pytest.approx(2.9, rel=0.01)
    assert not parts["input.slow_getitem"].shared
    more = run("b", rate=190.0, config={"loader": {"num_workers": 4}})
    parts = {
        one.id: one for one in compare(record(run(config=same), workers, samples), record(more)).realised
    }
    assert parts["input.no_workers"].applied and parts["input.no_workers"].inside
    assert parts["input.slow_getitem"].realised is None


def test_several_remedies_share_the_gain() -> None:
    first, second = finding("a.a", 1.2, 1.4, 1.6), finding("b.b", 1.2, 1.4, 1.6)
    small = finding("c.c", 1.0, 1.01, 1.02)
    found = compare(record(run(), first, second, small), record(run("b", rate=200.0)))
    parts = {one.id: one for one in found.realised}
    assert parts["a.a"].shared and parts["a.a"].realised == pytest.approx(2.0**0.5, rel=0.01)
    assert parts["c.c"].realised is None
    assert found.predicted_together is not None
    assert found.predicted_together.likely == pytest.approx(1.4 * 1.4 * 1.01)
