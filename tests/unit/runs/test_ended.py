"""Ended runs are cheap, and no more of them stay than allowed."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

from monitor.model.clock import Moment
from monitor.model.run import Run
from monitor.runs import ended
from monitor.runs.ended import EndedRuns
from monitor.runs.reader import RunReader
from monitor.runs.trouble import Trouble
from tests.unit.runs.rings import Script


def test_an_ended_run_costs_a_fraction_of_a_live_one(tmp_path: Path) -> None:
    """GIVEN runs of a thousand steps THEN ended ones take less than a third of the memory of live ones: no
    figures, no file."""
    scripts = [Script(tmp_path, f"run-{at}") for at in range(10)]
    for script in scripts:
        script.steps([2.0 + at % 7 for at in range(1000)])
    reader = RunReader([tmp_path])
    tracemalloc.start()
    try:
        reader.poll(scripts[0].now())
        reader.runs(scripts[0].now(), (), ())
        live = tracemalloc.get_traced_memory()[0]
        for script in scripts:
            script.end()
        reader.poll(scripts[0].now())
        assert len(reader.runs(scripts[0].now(), (), ())) == 10 and reader.followers == []
        assert tracemalloc.get_traced_memory()[0] < live / 3
    finally:
        tracemalloc.stop()


def test_who_has_most_is_cut_first_and_the_oldest_of_his() -> None:
    trouble = Trouble()
    kept = EndedRuns(600.0, trouble)
    for owner, count in ((1, 150), (2, 100), (3, 20)):
        for at in range(count):
            kept.add((owner, f"r{at}"), Run(f"r{at}@{owner}", "n", "ended", 0.0, ()), float(at))
    kept.cut()
    left = {owner: [run.id for run in kept.runs if run.id.endswith(f"@{owner}")] for owner in (1, 2, 3)}
    assert {owner: len(runs) for owner, runs in left.items()} == {1: 128, 2: 100, 3: 20}
    assert left[1][0] == "r22@1" and [(one.owner_uid, one.count) for one in trouble.counts()] == [(1, 22)]


def test_in_all_there_are_no_more_than_may_be() -> None:
    kept = EndedRuns(600.0, Trouble())
    for owner in range(50):
        for at in range(20):
            kept.add((owner, f"r{at}"), Run(f"r{at}@{owner}", "n", "ended", 0.0, ()), float(at))
    kept.cut()
    assert len(kept.runs) == ended.MAX_ENDED
    counts = [sum(run.id.endswith(f"@{owner}") for run in kept.runs) for owner in range(50)]
    assert max(counts) - min(counts) <= 1, "everybody keeps as much"


def test_ended_runs_leave_the_view_in_time() -> None:
    kept = EndedRuns(600.0, Trouble())
    kept.add((1, "a"), Run("a", "n", "ended", 0.0, ()), 100.0)
    kept.expire(Moment(10**9, 699.0))
    assert len(kept.runs) == 1
    kept.expire(Moment(0.0, 701.0))
    assert kept.runs == []
