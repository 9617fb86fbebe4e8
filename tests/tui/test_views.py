"""What the screens say: the answer line, the marks, the words."""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

import msgspec
import pytest

from monitor.model import facts, groups
from monitor.model.clock import Moment
from monitor.model.finding import Severity
from monitor.model.gpu import GpuCondition, Nvlink, Pcie
from monitor.model.history import RunRecord
from monitor.model.nodes import Node, Waste
from monitor.model.run import Run, RunCondition, RunState, Trend
from monitor.model.snapshot import Snapshot
from monitor.tui.frame import Frame, Hub, Update
from monitor.tui.pick import Pick
from monitor.tui.text import Block, Room
from monitor.tui.views import finding as one_finding
from monitor.tui.views import findings, gpus, host, processes, run_graphs, run_nodes, runs, symbols
from monitor.tui.views.answer import answer_of, shorten
from monitor.tui.views.gpu_text import condition_text, runs_text, traffic
from tests.tui import scenes
from tests.tui.stage import StagedApp

TICK = scenes.TICKS


def frame_of(*snapshots: Snapshot) -> Frame:
    hub = Hub(
        [(snapshot.host.hostname, "") for snapshot in snapshots], lambda: Moment(scenes.NOW, 1000.0 + TICK)
    )
    hub.take(Update(n, s, None, Moment(s.time, s.monotonic)) for n, s in enumerate(snapshots))
    return hub.frame()


def words(scene: str) -> tuple[str, str, str]:
    answer = answer_of(frame_of(scenes.SCENES[scene](TICK)))
    return answer.symbol.role, answer.what, answer.fix + answer.gain


def test_the_answer_names_cause_share_fix_and_gain() -> None:
    role, what, fix = words("data-bound")
    assert role == "warn"
    assert what == "resnet50-naive: GPU 0 is 29 % busy — starved by data loading (62 % of the step)."
    assert fix.startswith("Fix: Give the DataLoader 6 workers") and fix.endswith("predicted ×2.1 (1.7–2.4)")


@pytest.mark.parametrize(
    ("scene", "role", "part"),
    [
        ("one-busy", "good", "73 checks, none fired"),
        ("no-run", "dim", "8 of 8 GPUs idle"),
        ("hung", "alarm", "llama-ft rank 3 — Hung in backward: no step for 4 min 12 s."),
        ("lost", "alarm", "GPU 5 is lost: no longer on the bus"),
        ("throttled", "warn", "power limit"),
        ("no-gpu", "good", "watched"),
    ],
)
def test_the_answer_fits_the_scene(scene: str, role: str, part: str) -> None:
    found, what, _ = words(scene)
    assert found == role and part in what


def test_the_gain_survives_a_narrow_screen() -> None:
    short = shorten("Fix: " + "very long " * 20, ", predicted ×2.1 (1.7–2.4)", 60)
    assert len(short) <= 60 and short.endswith("predicted ×2.1 (1.7–2.4)")


def test_a_busy_gpu_is_good_news() -> None:
    [gpu] = scenes.SCENES["one-busy"](TICK).gpus
    assert symbols.GPU[gpu.condition] == ("●", "busy", "good")


def test_low_use_alarms_only_while_a_run_is_on_the_gpu() -> None:
    starved, idle = scenes.SCENES["data-bound"](TICK).gpus[0], scenes.SCENES["no-run"](TICK).gpus[0]
    assert (condition_text(starved), symbols.GPU[starved.condition].role) == ("starved", "alarm")
    assert (condition_text(idle), symbols.GPU[idle.condition].role) == ("idle", "dim")


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        (GpuCondition, symbols.GPU),
        (RunCondition, symbols.RUN),
        (RunState, symbols.RUN),
        (Severity, symbols.SEVERITY),
        (Trend, symbols.TREND),
    ],
)
def test_every_condition_has_a_symbol(kind: object, table: dict[str, symbols.Symbol]) -> None:
    assert set(get_args(kind)) <= set(table)


def test_without_device_timing_a_finding_says_that_a_gpu_starves() -> None:
    """The driver's list of processes ties the run to the GPU, the finding says why it waits."""
    snapshot = scenes.SCENES["data-bound"](TICK)
    bare = msgspec.structs.replace(snapshot.runs[0], starved_ratio=None, gpu_uuids=())
    finding = msgspec.structs.replace(scenes.NO_WORKERS, gpu=None)
    snapshot = facts.complete(msgspec.structs.replace(snapshot, runs=(bare,), findings=(finding,)))
    assert runs_text(snapshot.gpus[0]) == bare.name and condition_text(snapshot.gpus[0]) == "starved"
    assert answer_of(frame_of(snapshot)).what.startswith(f"{bare.name}: GPU 0 is 29 % busy — starved by data")


def test_several_hosts_put_the_severe_first_and_name_the_host() -> None:
    busy = scenes.SCENES["one-busy"](TICK)
    slow = scenes.SCENES["data-bound"](TICK)
    other = msgspec.structs.replace(slow, host=msgspec.structs.replace(slow.host, hostname="lab-08"))
    frame = frame_of(busy, other)
    assert [finding.severity for _, finding in frame.findings()] == ["warning", "warning", "hint", "healthy"]
    assert answer_of(frame).what.startswith("lab-08 resnet50-naive: GPU 0")
    host, finding = next(frame.findings())
    assert findings.concerns(frame, host, finding) == "lab-08 resnet50-naive"


def test_links_are_shares_of_what_they_can_carry() -> None:
    assert traffic(Pcie(receive_bytes_per_second=3e9, receive_ratio=0.5)) == "50% —"
    assert traffic(Pcie(receive_bytes_per_second=3e9)) == "3G —"
    assert traffic(Nvlink(bandwidth_bytes_per_second=1e9)) == "—"


def test_processes_only_the_driver_knows_are_listed_too() -> None:
    bare = msgspec.structs.replace(scenes.SCENES["one-busy"](TICK), processes=())
    [entry] = processes.entries(frame_of(facts.complete(bare)), processes.Order())
    assert entry.process.pid == 4100 and entry.process.gpu_memory_bytes and entry.process.user is None


@pytest.mark.parametrize("sort", list(processes.SORTS))
def test_every_column_sorts_and_unknown_values_come_last(sort: str) -> None:
    frame = frame_of(scenes.SCENES["eight"](TICK))
    for reverse in (False, True):
        ordered = processes.entries(frame, processes.Order(sort, reverse))
        values = [processes.SORTS[sort](entry.process) for entry in ordered]
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
    before = frame_of(facts.complete(msgspec.structs.replace(made, runs=(ended,))))
    after = frame_of(facts.complete(msgspec.structs.replace(made, runs=(again, ended))))
    assert any(f.run == old.id for _, f in before.findings())
    assert not any(f.run == old.id for _, f in after.findings())
    assert any(f.run == old.id for _, f in after.findings(past=True))
    assert answer_of(after).what != answer_of(before).what


def ended(scene: str) -> Snapshot:
    """The scene after all its runs have ended."""
    made = scenes.SCENES[scene](TICK)
    over = [msgspec.structs.replace(run, state="ended", ended=made.time) for run in made.runs]
    return facts.complete(msgspec.structs.replace(made, runs=tuple(over)))


def test_an_ended_run_is_told_as_history_and_promises_nothing() -> None:
    frame = frame_of(ended("data-bound"))
    answer = answer_of(frame)
    assert answer.what.startswith("resnet50-naive has ended. Found in it: No loader workers")
    assert answer.fix.startswith("For the next run: ") and not answer.gain and answer.symbol.role == "dim"
    assert "×" not in text_of(findings.table(frame, Room(140, 40)))


def test_the_page_of_an_ended_run_tells_the_gain_of_the_next() -> None:
    snapshot = ended("data-bound")
    found = next(one for one in snapshot.findings if one.speedup)
    shown = text_of(one_finding.preview(found, Room(80, 30)))
    assert "×2.1 (1.7–2.4)  step rate of the next run" in shown
    lead = next(one for one in groups.leads(snapshot) if one.id == found.id)
    assert "×" not in (told := text_of(one_finding.preview(lead, Room(80, 30)))) and "has ended" in told


@pytest.mark.parametrize("width", [60, 120])
def test_an_ended_runs_own_screen_says_for_which_run_its_gains_are(width: int) -> None:
    snapshot = ended("data-bound")
    told = text_of(findings.table(frame_of(snapshot), Room(width, 40), scenes.NO_WORKERS.run))
    assert "for the next run" in told and "×2.1 (1.7–2.4)" in told and "predicted gain" not in told
    past = facts.complete_record(RunRecord(snapshot.runs[0], (scenes.NO_WORKERS,), scenes.NOW))
    told = " ".join(text_of(findings.recorded(past.findings, Room(width, 40))).split())
    assert "predicted for the next run: ×2.1 (1.7–2.4)" in told


def test_a_list_leaves_the_details_to_the_finding() -> None:
    frame = frame_of(scenes.SCENES["data-bound"](TICK))
    assert "__getitem__" not in text_of(findings.table(frame, Room(120, 40)))
    assert "__getitem__" not in answer_of(frame).what
    shown = one_finding.about(frame, frame.hosts[0], scenes.NO_WORKERS, Room(120, 40))
    assert "__getitem__" in shown[0].text + shown[1].text


def test_a_long_line_of_a_change_goes_on_with_its_sign() -> None:
    lines = one_finding.diff_lines("+     num_workers=6, persistent_workers=True,", 36)
    assert [line.text.rstrip() for line in lines] == [
        "+     num_workers=6,",
        "+         persistent_workers=True,",
    ]


@pytest.mark.parametrize("width", [60, 76, 80, 110, 200])
def test_the_graphs_of_a_run_fill_the_room(width: int) -> None:
    run = scenes.SCENES["data-bound"](TICK).runs[0]
    axis = run_graphs.Axis(run, Room(width, 40))
    assert axis.width == sum(axis.cells) == width - run_graphs.GUTTER - 2 and min(axis.cells) >= 1
    assert max(axis.cells) - min(axis.cells) <= 1
    assert max(len(line.text.rstrip()) for line in run_graphs.graphs(run, Room(width, 40))) <= width


def test_a_host_is_named_where_two_rows_do_not_fit_abreast() -> None:
    parts: list[tuple[str, list[Snapshot | str]]] = [
        ("lab-07", [*scenes.ticks("sixteen")]),
        ("lab-08", [*scenes.ticks("data-bound")]),
    ]
    told = text_of(gpus.table(StagedApp(parts).frame, Room(60, 6)))
    assert "lab-08" in told and "lab-07" in told and "l…" not in told


def test_a_lost_gpu_says_what_happened_in_the_room_of_its_readings() -> None:
    frame = frame_of(scenes.SCENES["lost"](TICK))
    assert "lost 64s  no longer on the bus (XID 79)" in text_of(gpus.table(frame, Room(80, 12)))
    assert "lost 64s: no longer" in text_of(gpus.table(frame, Room(60, 6)))


def text_of(block: Block) -> str:
    return "\n".join(line.text.rstrip() for line in (*block.head, *block.rows))


MANY = scenes.SCENES["many"](TICK)


def test_a_finding_begins_with_whom_it_is_about_and_is_wrapped_not_cut() -> None:
    text = text_of(findings.table(frame_of(MANY), Room(60, 30)))
    assert "▲ stuck-job: Hung in backward: no step for" in text and "10 min 03 s" in text and "…" not in text
    assert "py-spy dump --pid 4103" in " ".join(text.split())


def test_equal_findings_are_one_and_their_command_is_readable() -> None:
    text = text_of(findings.table(frame_of(MANY), Room(80, 30)))
    assert text.count("Memory errors") == 1 and "Memory errors on GPUs 7–9" in text
    joined = " ".join(text_of(one_finding.preview(scenes.ECC, Room(24, 30))).split())
    assert "nvidia-smi -i 7 --gpu-reset" in joined


def test_where_not_all_gpus_fit_the_idle_ones_are_one_line() -> None:
    folded = text_of(gpus.table(frame_of(MANY), Room(80, 9)))
    assert "18 idle: GPUs 6–23" in folded and folded.index("▲ 3") < folded.index("● 0")
    assert "idle: " not in text_of(gpus.table(frame_of(MANY), Room(80, 30)))


def test_a_hung_run_makes_no_steps_and_its_chart_ends() -> None:
    stuck = next(run for run in MANY.runs if run.name == "stuck-job")
    assert (stuck.iterations_per_second, stuck.samples_per_second) == (0.0, 0.0)
    assert stuck.silent_windows == 10
    for width in (48, 62, 100, 200):
        chart = "\n".join(made.text for made in run_graphs.waterfall(stuck, Room(width, 30), 4))
        assert "╱╱" in chart and "no step for 10 min 03 s" in chart


def test_a_trend_is_a_change_and_a_run_that_is_over_has_no_speed() -> None:
    text = text_of(runs.table(frame_of(MANY), Room(160, 30)))
    assert "↓−87 %" in text and "failed: OutOfMemoryError" in text
    assert "2.50" not in text


def test_a_column_nobody_fills_is_not_there() -> None:
    titles = text_of(gpus.table(frame_of(MANY), Room(200, 30))).splitlines()[0]
    held = text_of(gpus.table(frame_of(scenes.SCENES["throttled"](TICK)), Room(200, 6))).splitlines()[0]
    assert "held by" not in titles and "held by" in held


def test_the_host_panel_shows_cores_pressure_disks_and_network() -> None:
    text = text_of(host.table(frame_of(MANY), Room(160, 14)))
    for part in (
        "64 cores",
        "load 21.4 19.8 18.1",
        "CPU 3 % · memory 0 % · disk 12 %",
        "nvme0n1 22 % busy",
        "eth0 ↓",
    ):
        assert part in text
    assert text.count("╭") == 4


def test_words_and_a_user_narrow_what_is_shown() -> None:
    frame = frame_of(MANY)
    found = frame.picked(Pick(words="resnet"))
    assert [run.name for _, run in found.runs()] == ["resnet50-naive"]
    assert [gpu.index for _, gpu in found.gpus()] == [2]
    assert all("resnet" in f.subject for _, f in found.findings())
    assert not list(frame.picked(Pick(user="nobody")).gpus())
    assert [gpu.index for _, gpu in frame.picked(Pick(user="maya")).gpus()] == [3, 2, 0, 1, 4, 5]


def test_gpus_and_runs_can_be_ordered() -> None:
    frame = frame_of(MANY)
    assert [gpu.index for _, gpu in frame.picked(Pick("number")).gpus()] == list(range(24))
    used = [gpu.memory_used_ratio or 0 for _, gpu in frame.picked(Pick("memory")).gpus()]
    assert used == sorted(used, reverse=True)
    assert next(frame.runs())[1].name == "stuck-job"


def test_the_machines_of_a_run_stand_beside_each_other() -> None:
    """One is slow, one lost; what the waiting cost is below them."""
    slow = Node("n2", "running", (2, 3), own_seconds=0.08, skew_ratio=1.6, phase="data", extra_seconds=0.03)
    waste = Waste(1.25, held_gpu_hours=8.0, idle_gpu_hours=0.5)
    run = Run("r", "r", "running", 0.0, (), nodes=(slow, Node("n3", "lost", (4, 5))), waste=waste)
    text = "\n".join(
        "".join(span.text for span in made.spans) for made in run_nodes.nodes(run, Room(100, 20))
    )
    assert "n2" in text and "2–3" in text and "×1.6" in text and "data +30 ms" in text
    assert "n3" in text and "lost" in text
    assert "1.25 h" in text and "8 h" in text and "0.500 h" in text
