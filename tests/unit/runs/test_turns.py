"""A run with very many ranks: they are read in turns, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

from monitor.runs.reader import FEW_RUNS, MOST_TURNS, TURN_RINGS, RunReader
from tests.unit.runs.rings import Script

RANKS = 2 * TURN_RINGS


def test_ranks_of_a_large_run_take_turns(tmp_path: Path) -> None:
    """GIVEN a run of many ranks and one of another run WHEN they are polled THEN the first rank and the other
    run are read every time, each other rank every second time, and in the end all have all their steps."""
    scripts = [Script(tmp_path, rank=rank, world=RANKS) for rank in range(RANKS)]
    alone = Script(tmp_path, "alone")
    reader = RunReader([tmp_path])
    seen: list[list[int]] = []
    for _ in range(6):
        for script in (*scripts, alone):
            script.steps([10.0] * 100)
        reader.poll(alone.now())
        runs = {run.id: run for run in reader.runs(alone.now(), (), ())}
        seen.append([rank.steps for rank in runs["run-1"].ranks])
        assert runs["alone"].steps == seen[-1][0] == 100 * len(seen)
    late = [sum(steps < 100 * at for steps in ranks) for at, ranks in enumerate(seen, 1)]
    assert late[0] == 0 and {RANKS // 2 - 1, RANKS // 2} == set(late[1:])
    assert all(min(ranks) >= 100 * at for at, ranks in enumerate(seen)), "nobody waits longer than one poll"
    for script in (*scripts, alone):
        script.end()
    for _ in range(3):
        reader.poll(alone.now())
        over = {run.id: run for run in reader.runs(alone.now(), (), ())}["run-1"]
    assert over.state == "ended" and {rank.steps for rank in over.ranks} == {600} and over.lost == 0
    reader.close()


def test_a_rank_that_fills_its_ring_quickly_does_not_wait(tmp_path: Path) -> None:
    scripts = [Script(tmp_path, rank=rank, world=RANKS) for rank in range(RANKS)]
    quick = scripts[-1]
    reader = RunReader([tmp_path])
    for tick in range(1, 5):
        for script in scripts:
            script.steps([1.0] * (2000 if script is quick else 10))
        reader.poll(quick.now())
        (run,) = reader.runs(quick.now(), (), ())
        assert run.ranks[-1].steps == 2000 * tick
    reader.close()


def test_many_runs_take_turns(tmp_path: Path) -> None:
    """GIVEN more runs than anybody watches by the second WHEN they are polled THEN each is read every other
    time and shown as it was in between, and a large run among them leaves none of its ranks out."""
    large = [Script(tmp_path, "large", rank=rank, world=RANKS) for rank in range(RANKS)]
    small = [Script(tmp_path, f"small-{number}") for number in range(FEW_RUNS)]
    reader, now = RunReader([tmp_path]), small[0].now
    steps: list[dict[str, int]] = []
    for _ in range(9):
        for script in (*large, *small):
            script.steps([10.0] * 10)
        reader.poll(now())
        runs = {run.id: run for run in reader.runs(now(), (), ())}
        steps.append({id: run.steps for id, run in runs.items()})
        slowest = min(rank.steps for rank in runs["large"].ranks)
        assert slowest >= 10 * (len(steps) - MOST_TURNS)
    for number in range(FEW_RUNS):
        known = [seen[f"small-{number}"] for seen in steps]
        assert known == sorted(known) and 4 <= len(set(known)) <= 6, "read about every other time"
        assert known[-1] >= 80
    reader.close()
