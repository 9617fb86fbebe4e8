"""The timeline stays small however long the run, and shows a decay."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.runs.reader import RunReader
from monitor.runs.timeline import WINDOWS
from sdk import ring
from tests.unit.runs.rings import Script
from tests.unit.runs.test_figures import read


@pytest.mark.parametrize("seconds", [3, 60, 3000])
def test_at_most_64_windows(tmp_path: Path, seconds: int) -> None:
    script = Script(tmp_path)
    script.steps([seconds * 1000 / 600] * 600, samples=4)
    timeline = read(script).timeline
    assert 1 < len(timeline) <= WINDOWS
    assert sum(window.steps for window in timeline) == 600
    assert sum(window.steps_seconds for window in timeline) == pytest.approx(seconds)
    starts = [window.start for window in timeline]
    assert starts == sorted(starts) and timeline[0].first_step == 1
    assert all(sum(window.phases.values()) == pytest.approx(1.0) for window in timeline)


def test_a_run_that_was_read_in_one_go_keeps_its_loss_curve(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for at in range(400):
        script.step(10.0, loss=ring.float_bits(400.0 - at))
    losses = [window.loss or 0.0 for window in read(script).timeline]
    assert len(losses) > 10 and losses == sorted(losses, reverse=True) and losses[-1] == 1.0
    assert len(set(losses)) == len(losses), "every window has its own"


def test_trend_of_a_decaying_run(tmp_path: Path) -> None:
    """The symptom from the seed document: 2052 → 539 samples/s."""
    script = Script(tmp_path)
    for at in range(600):
        pace = 2052 + (539 - 2052) * min(1.0, at / 500)
        script.step(512_000 / pace, samples=512)
    trend = read(script).trend_ratio
    assert trend == pytest.approx(539 / 2052, abs=0.03)


def test_trend_of_a_steady_run_with_validation_is_one(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for at in range(1, 1001):
        validates = at % 50 == 0
        jitter = 1 + 0.05 * ((at * 7919) % 100) / 100
        script.step(
            20.0 * jitter + (2000.0 if validates else 0.0), {6: 2000.0} if validates else {}, samples=8
        )
    trend = read(script).trend_ratio
    assert trend is not None and trend > 0.95


def test_only_the_first_rank_keeps_a_timeline(tmp_path: Path) -> None:
    """GIVEN a run of four ranks WHEN it is read THEN the run has the first rank's whole timeline, and the
    others keep none, because it would never be shown."""
    scripts = [Script(tmp_path, rank=rank, world=4) for rank in range(4)]
    reader = RunReader([tmp_path])
    for _ in range(3):
        for script in scripts:
            script.steps([5.0] * 400, samples=4)
        reader.poll(scripts[0].now())
        (run,) = reader.runs(scripts[0].now(), (), ())
    assert sum(window.steps for window in run.timeline) == 1200
    kept = {one.meta.rank: one.figures.timeline for one in reader.followers if one.figures is not None}
    assert [kept[rank] is not None for rank in range(4)] == [True, False, False, False]
    assert {rank.steps for rank in run.ranks} == {1200} and len({rank.whole.p50 for rank in run.ranks}) == 1
    reader.close()
