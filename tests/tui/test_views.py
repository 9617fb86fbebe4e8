"""What the screens say: the answer line, the marks, the words."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from monitor.clock import Moment
from monitor.snapshot import Snapshot
from monitor.tui.frame import Frame, Hub, Update
from monitor.tui.views import findings, processes
from monitor.tui.views.gpuwords import pcie_limit, traffic
from monitor.tui.views.marks import gpu_mark, run_mark, runs_on
from monitor.tui.views.top import squeeze, verdict
from tests.tui import scenes

TICK = scenes.TICKS


def frame_of(*snapshots: Snapshot) -> Frame:
    hub = Hub(
        [(snapshot.host.hostname, "") for snapshot in snapshots], lambda: Moment(scenes.NOW, 1000.0 + TICK)
    )
    hub.take(Update(n, s, None, Moment(s.time, s.monotonic)) for n, s in enumerate(snapshots))
    return hub.frame()


def words(scene: str) -> tuple[str, str, str]:
    mark, what, fix = verdict(frame_of(scenes.SCENES[scene](TICK)))
    return mark.role, what, fix


def test_the_answer_names_cause_share_fix_and_gain() -> None:
    role, what, fix = words("data-bound")
    assert role == "alarm"
    assert what == "GPU 0 29 % busy — starved by data loading (62 % of the step)."
    assert fix.startswith("Fix: num_workers 0→6") and fix.endswith("predicted ×2.1 (1.7–2.4)")


@pytest.mark.parametrize(
    ("scene", "role", "part"),
    [
        ("one-busy", "good", "Well used"),
        ("no-run", "dim", "8 of 8 GPUs idle"),
        ("hung", "alarm", "rank 3 stands in backward"),
        ("lost", "alarm", "fallen off the bus"),
        ("throttled", "warn", "power limit"),
        ("no-gpu", "good", "watched"),
    ],
)
def test_the_answer_fits_the_scene(scene: str, role: str, part: str) -> None:
    found, what, _ = words(scene)
    assert found == role and part in what


def test_the_gain_survives_a_narrow_screen() -> None:
    short = squeeze("Fix: " + "very long " * 20 + ", predicted ×2.1 (1.7–2.4)", 60)
    assert len(short) <= 60 and short.endswith("predicted ×2.1 (1.7–2.4)")


def test_a_busy_gpu_is_good_news() -> None:
    snapshot = scenes.SCENES["one-busy"](TICK)
    assert gpu_mark(snapshot.gpus[0], snapshot) == ("●", "busy", "good")


def test_low_use_alarms_only_while_a_run_is_on_the_gpu() -> None:
    starved, idle = scenes.SCENES["data-bound"](TICK), scenes.SCENES["no-run"](TICK)
    assert gpu_mark(starved.gpus[0], starved).word == "starved"
    assert gpu_mark(idle.gpus[0], idle).word == "idle" and gpu_mark(idle.gpus[0], idle).role == "dim"


def test_without_device_timing_a_finding_says_that_a_gpu_starves() -> None:
    """The driver's list of processes ties the run to the GPU, the finding says why it waits."""
    snapshot = scenes.SCENES["data-bound"](TICK)
    bare = msgspec.structs.replace(snapshot.runs[0], starved_ratio=None, gpu_uuids=())
    finding = msgspec.structs.replace(scenes.NO_WORKERS, gpu=None)
    snapshot = msgspec.structs.replace(snapshot, runs=(bare,), findings=(finding,))
    assert runs_on(snapshot.gpus[0], snapshot) == [bare]
    assert gpu_mark(snapshot.gpus[0], snapshot).word == "starved"
    assert run_mark(bare, (finding,)).word == "starved" and run_mark(bare, ()).word == "running"
    assert verdict(frame_of(snapshot))[1].startswith("GPU 0 29 % busy — starved by data loading")


def test_several_hosts_put_the_severe_first_and_name_the_host() -> None:
    busy = scenes.SCENES["one-busy"](TICK)
    slow = scenes.SCENES["data-bound"](TICK)
    other = msgspec.structs.replace(slow, host=msgspec.structs.replace(slow.host, hostname="lab-08"))
    frame = frame_of(busy, other)
    assert [finding.severity for _, finding in frame.findings()] == ["critical", "warning", "hint", "healthy"]
    assert verdict(frame)[1].startswith("lab-08: GPU 0")
    host, finding = next(frame.findings())
    assert findings.concerns(frame, host, finding) == "lab-08: resnet50-naive"


def test_links_are_shares_of_what_they_can_carry() -> None:
    gpu = scenes.gpu(0, TICK)
    limit = pcie_limit(gpu)
    assert limit == pytest.approx(63e9, rel=0.01)
    assert traffic(limit / 2 if limit else None, None, limit) == "50% —"
    assert traffic(None, None, limit) == "—"


def test_processes_only_the_driver_knows_are_listed_too() -> None:
    snapshot = msgspec.structs.replace(scenes.SCENES["one-busy"](TICK), processes=())
    [entry] = processes.entries(frame_of(snapshot), processes.Order())
    assert entry.process.pid == 4100 and entry.gpu_memory and entry.process.user is None


@pytest.mark.parametrize("sort", list(processes.SORTS))
def test_every_column_sorts_and_unknown_values_come_last(sort: str) -> None:
    frame = frame_of(scenes.SCENES["eight"](TICK))
    for reverse in (False, True):
        values = [processes.SORTS[sort](e) for e in processes.entries(frame, processes.Order(sort, reverse))]
        known = [value for value in values if value is not None]
        assert known == sorted(known, reverse=reverse) and values[: len(known)] == known


def test_the_tree_puts_workers_under_their_trainer_and_keeps_all() -> None:
    frame = frame_of(scenes.SCENES["eight"](TICK))
    flat, tree = (processes.entries(frame, processes.Order(tree=on)) for on in (False, True))
    assert {e.process.pid for e in flat} == {e.process.pid for e in tree}
    for before, entry in pairwise(tree):
        if entry.depth:
            assert entry.process.parent == before.process.pid or before.process.parent == entry.process.parent


def test_what_was_found_about_a_run_that_was_run_again_is_past() -> None:
    """Its own page still has it; the overview and the answer are about what is there to change now."""
    made = scenes.SCENES["data-bound"](TICK)
    (old,) = (run for run in made.runs if any(f.run == run.id for f in made.findings))
    ended = msgspec.structs.replace(old, state="ended", ended=old.started + 60)
    again = msgspec.structs.replace(old, id="again", started=old.started + 100)
    before = frame_of(msgspec.structs.replace(made, runs=(ended,)))
    after = frame_of(msgspec.structs.replace(made, runs=(again, ended)))
    assert any(f.run == old.id for _, f in before.findings())
    assert not any(f.run == old.id for _, f in after.findings())
    assert any(f.run == old.id for _, f in after.findings(past=True))
    assert verdict(after)[1] != verdict(before)[1]
