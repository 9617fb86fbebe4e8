"""The machine in one line."""

from __future__ import annotations

from msgspec.structs import replace

from monitor.model.finding import Speedup
from monitor.model.wall import Wall, wall_of
from tests import scene


def test_what_works_what_waits_and_what_could_be_had_back() -> None:
    """GIVEN a run that could be twice as fast, a lost GPU and a crashed run THEN all are counted."""
    run = replace(
        scene.snapshot().runs[0], live=True, combined=Speedup(1.5, 2.0, 3.0), on_gpu_uuids=("GPU-0",)
    )
    crashed = replace(run, id="b", state="killed", live=False, superseded=False)
    gpus = (replace(scene.gpu(), condition="starved"), replace(scene.lost_gpu(), condition="lost"))
    assert wall_of(gpus, (run, crashed, replace(crashed, id="c", superseded=True))) == Wall(
        gpu_count=2,
        gpus_working=0,
        gpus_starved=1,
        gpus_lost=1,
        gpus_to_gain=0.5,
        live_runs=1,
        runs_crashed=1,
    )


def test_a_gpu_that_two_runs_share_is_counted_once() -> None:
    """GIVEN two runs on one GPU, each of which could be twice as fast THEN they waste half of it, not all."""
    run = replace(
        scene.snapshot().runs[0], live=True, combined=Speedup(1.5, 2.0, 3.0), on_gpu_uuids=("GPU-0",)
    )
    assert wall_of((scene.gpu(),), (run, replace(run, id="b"))).gpus_to_gain == 0.5


def test_nothing_predicted_is_not_zero() -> None:
    assert wall_of((), ()).gpus_to_gain is None
    assert scene.snapshot().wall.gpu_count == 2
