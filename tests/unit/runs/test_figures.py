"""Figures of a rank: what is counted, what is left out, and that everything adds up."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.model.run import STEP_BUCKETS, Run
from monitor.runs.reader import RunReader
from sdk import ring
from tests.unit.runs.rings import Script


def read(script: Script, later: float = 0.0) -> Run:
    reader = RunReader([script.path.parent])
    try:
        reader.poll(script.now(later))
        (run,) = reader.runs(script.now(later), (), ())
    finally:
        reader.close()
    return run


steps = st.lists(
    st.tuples(
        st.floats(0.01, 5000.0),
        st.dictionaries(st.integers(0, 15), st.floats(0.0, 400.0), max_size=6),
        st.sampled_from([0, 0, 0, ring.F_WARMUP, ring.F_SAMPLED, ring.F_EPOCH_START, ring.F_COMPILED]),
        st.integers(0, 2_000_000),
    ),
    min_size=1,
    max_size=60,
)


@given(steps)
def test_phase_shares_sum_to_the_step(many: list[tuple[float, dict[int, float], int, int]]) -> None:
    """GIVEN any steps WHEN read THEN shares sum to 1, means to the mean period, and nothing is lost."""
    with tempfile.TemporaryDirectory() as directory:
        script = Script(Path(directory))
        for ms, phases, flags, overhead in many:
            whole = max(ms, 1.01 * sum(phases.values()) + overhead / 1e6)
            script.step(whole, phases, flags=flags, overhead=overhead)
        rank = read(script).ranks[0]
        script.writer.close()
    assert (rank.steps, rank.lost) == (len(many), 0)
    steady = [flags for _, _, flags, _ in many if not flags & (ring.F_WARMUP | ring.F_SAMPLED)]
    if not steady:
        assert rank.phases == ()
        return
    assert sum(phase.share for phase in rank.phases) == pytest.approx(1.0)
    assert all(0.0 <= phase.share <= 1.0 for phase in rank.phases)
    assert rank.iterations_per_second is not None
    period = sum(phase.mean_seconds for phase in rank.phases)
    assert period <= 1.0 / rank.iterations_per_second * 1.001
    assert sum(rank.histogram) == len(many)


def test_warmup_and_sampled_steps_are_not_steady(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.steps([500.0] * 3, flags=ring.F_WARMUP, samples=8)
    script.steps([10.0] * 50, samples=8)
    script.steps([90.0] * 2, flags=ring.F_SAMPLED, samples=8)
    rank = read(script).ranks[0]
    assert rank.warmup_steps == 3
    assert rank.step.count == rank.whole.count == 50
    assert rank.step.mean == pytest.approx(0.010)
    assert rank.samples_per_second == pytest.approx(800.0)
    assert rank.samples == 8 * 55


def test_own_overhead_is_subtracted_and_published(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.steps([100.0] * 120, overhead=10_000_000)
    rank = read(script).ranks[0]
    assert rank.overhead_ratio == pytest.approx(0.1)
    assert rank.step.mean == pytest.approx(0.09)
    assert rank.iterations_per_second == pytest.approx(10.0)


def test_a_short_run_says_nothing_about_the_share_of_overhead(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.steps([1.0] * 30, overhead=400_000)
    assert read(script).ranks[0].overhead_ratio is None


def test_device_times(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for number in range(1, 21):
        script.step(
            10.0, device_seq=number, device_busy=3_000_000, device_starved=7_000_000, device_lag=2_000_000
        )
    script.step(10.0)
    run = read(script)
    times = run.ranks[0].device_times
    assert (times.busy_ratio, times.starved_ratio) == (pytest.approx(0.3), pytest.approx(0.7))
    assert (times.measured_steps, times.bound) == (20, "unknown")
    assert times.starved_seconds == pytest.approx(0.14)
    assert run.starved_ratio == pytest.approx(0.7)


def test_absent_is_none_not_zero(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.steps([10.0] * 10)
    run = read(script)
    assert run.samples_per_second is None and run.tokens_per_second is None
    assert run.starved_ratio is None and run.trend_ratio is None and run.ranks[0].loss is None
    assert run.ranks[0].device_times.busy_ratio is None


def test_histogram_and_its_exemplars(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.steps([0.9, 2.0, 2.1, 70_000.0])
    rank = read(script).ranks[0]
    assert len(rank.histogram) == len(STEP_BUCKETS) + 1
    assert rank.histogram[0] == 1 and rank.histogram[1] == 2 and rank.histogram[-1] == 1
    newest = rank.exemplars[1]
    assert newest is not None and newest.step == 3 and newest.seconds == pytest.approx(0.0021)


def test_loss_scalars_and_user_phases(tmp_path: Path) -> None:
    script = Script(tmp_path, phases=["augment"], scalars=["accuracy", "unset"], batch_size=16)
    script.step(10.0, {12: 4.0}, loss=ring.float_bits(0.25))
    script.step(10.0, {12: 4.0})
    script.writer.scalars[0] = 0.5
    run = read(script)
    rank = run.ranks[0]
    assert rank.loss == 0.25 and rank.scalars == {"accuracy": 0.5} and run.batch_size == 16
    assert {phase.name: round(phase.share, 3) for phase in rank.phases} == {"augment": 0.4, "other": 0.6}


def test_records_that_cannot_be_are_counted_not_believed(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.steps([10.0] * 20)
    script.step(10.0, end=5)
    script.step(10.0, begin=2**63)
    script.step(10.0, samples=2**60)
    script.step(10.0, {0: 1e9})
    script.steps([10.0] * 2, device_seq=1, device_busy=2**64 - 1, device_starved=2**64 - 1)
    script.step(10.0, overhead=2**64 - 1)
    reader = RunReader([tmp_path])
    reader.poll(script.now())
    rank = reader.runs(script.now(), (), ())[0].ranks[0]
    assert rank.steps == 27 and rank.step.count == 22 and rank.samples == 0
    assert reader.dropped["rings.records"] == 5 and rank.device_times.busy_ratio is None
    reader.close()


def test_rate_falls_while_the_open_step_hangs(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.steps([10.0] * 500)
    script.live(3)
    assert read(script).state == "running"
    run = read(script, later=30.0)
    assert run.state == "stalled" and run.ranks[0].live_phase == "backward"
    assert run.ranks[0].live_seconds == pytest.approx(30.0)
    assert run.iterations_per_second is not None and run.iterations_per_second < 20.0


def test_a_long_validation_is_not_a_hang(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.steps([10.0] * 100)
    script.live(ring.PHASES.index("validate"))
    assert read(script, later=60.0).state == "running"
    assert read(script, later=300.0).state == "stalled"


def test_set_up_is_not_a_hang(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.live(ring.LIVE_NONE)
    assert read(script, later=600.0).state == "running"
