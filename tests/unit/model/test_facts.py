"""Facts shared by every face: who computes where, what is starved, superseded, falling, and about whom."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from monitor.model import facts, groups
from monitor.model.finding import Finding, Speedup
from monitor.model.gpu import Gpu, GpuProcess, Pcie
from monitor.model.policy import Policy
from monitor.model.run import Rank, Run
from monitor.model.snapshot import Snapshot
from tests import scene


def run(id: str = "a", **fields: Any) -> Run:
    base: dict[str, Any] = {"name": "resnet", "state": "running", "started": scene.NOW - 60.0, "ranks": ()}
    return Run(id=id, **(base | fields))


def gpu(index: int = 0, **fields: Any) -> Gpu:
    return Gpu(index, f"GPU-{index}", **fields)


def completed(*runs: Run, gpus: tuple[Gpu, ...] = (), findings: tuple[Finding, ...] = ()) -> Snapshot:
    bare = replace(scene.snapshot(), runs=runs, gpus=gpus, findings=findings)
    return facts.complete(bare)


def test_a_run_is_on_the_gpu_it_names_and_on_the_one_that_lists_its_process() -> None:
    named, listed = run("a", gpu_uuids=("GPU-0",)), run("b", pids=(7,))
    done = completed(named, listed, gpus=(gpu(0), gpu(1, processes=(GpuProcess(7),)), gpu(2)))
    assert [one.run_ids for one in done.gpus] == [("a",), ("b",), ()]


def test_a_run_that_is_over_is_on_no_gpu() -> None:
    over = run(state="ended", ended=scene.NOW, gpu_uuids=("GPU-0",))
    assert completed(over, gpus=(gpu(),)).gpus[0].run_ids == ()


@pytest.mark.parametrize(
    ("state", "starved", "use", "throttle", "expected"),
    [
        ("running", 0.6, 0.3, None, "starved"),
        ("running", 0.6, 0.8, None, "busy"),
        ("running", 0.1, 0.3, None, "part_busy"),
        ("running", 0.1, 0.9, {"sw_power_cap": True}, "throttled"),
        ("running", 0.1, 0.9, {"gpu_idle": True}, "busy"),
        ("stalled", 0.6, 0.3, None, "stalled"),
        ("running", None, None, None, "unknown"),
    ],
)
def test_the_condition_of_a_gpu_with_a_run(
    state: Any, starved: float | None, use: float | None, throttle: Any, expected: str
) -> None:
    on_it = run(state=state, starved_ratio=starved, gpu_uuids=("GPU-0",))
    done = completed(on_it, gpus=(gpu(utilization_ratio=use, throttle=throttle),))
    assert done.gpus[0].condition == expected


@pytest.mark.parametrize(("use", "expected"), [(0.0, "idle"), (0.3, "in_use"), (0.9, "busy")])
def test_the_condition_of_a_gpu_without_a_run(use: float, expected: str) -> None:
    assert completed(gpus=(gpu(utilization_ratio=use),)).gpus[0].condition == expected


def test_a_lost_gpu_is_lost_whatever_it_last_said() -> None:
    assert completed(gpus=(gpu(state="lost", utilization_ratio=0.9),)).gpus[0].condition == "lost"


def test_thresholds_are_the_policys() -> None:
    snapshot = replace(scene.snapshot(), runs=(run(starved_ratio=0.3),), findings=())
    strict = facts.complete(snapshot, Policy(gpu_starved=0.25)).runs[0]
    lenient = facts.complete(snapshot, Policy(gpu_starved=0.5)).runs[0]
    assert (strict.starving, lenient.starving) == (True, False)


def test_a_run_without_device_time_starves_when_a_rule_about_its_input_warns() -> None:
    slow = Finding(id="input.no_workers", severity="warning", title="", run="a")
    other = Finding(id="compute.sleep", severity="warning", title="", run="a")
    assert completed(run(), findings=(slow,)).runs[0].condition == "starved"
    assert completed(run(), findings=(other,)).runs[0].condition == "warning"


def test_what_was_run_again_is_superseded_and_so_are_its_findings() -> None:
    old = run("old", state="ended", started=scene.NOW - 900.0, ended=scene.NOW - 500.0, user="ada")
    new, others = run("new", user="ada"), run("other", user="bob", state="ended", ended=scene.NOW)
    about = tuple(Finding(id="x.y", severity="hint", title="", run=id) for id in ("old", "new", "other"))
    done = completed(old, new, others, findings=about)
    assert [one.superseded for one in done.runs] == [True, False, False]
    assert [one.superseded for one in done.findings] == [True, False, False]


def test_two_live_runs_of_one_name_do_not_supersede_each_other() -> None:
    done = completed(run("a", started=scene.NOW - 9.0), run("b", started=scene.NOW - 1.0))
    assert not any(one.superseded for one in done.runs)


def test_the_subject_is_what_people_call_it() -> None:
    host = scene.snapshot().host.hostname
    about = [
        Finding(id="a.a", severity="hint", title="", run="a"),
        Finding(id="a.b", severity="hint", title="", run="a", rank=3),
        Finding(id="a.c", severity="hint", title="", gpu="GPU-5"),
        Finding(id="a.d", severity="hint", title=""),
    ]
    done = completed(run("a"), gpus=(gpu(5),), findings=tuple(about))
    assert [one.subject for one in done.findings] == ["resnet", "resnet rank 3", "GPU 5", host]


@pytest.mark.parametrize(
    ("ratio", "expected"), [(None, None), (0.95, "steady"), (0.8, "falling"), (0.3, "collapsed")]
)
def test_the_trend_of_a_run(ratio: float | None, expected: str | None) -> None:
    assert completed(run(trend_ratio=ratio)).runs[0].trend == expected


def test_the_rank_that_is_longest_in_its_phase_is_what_the_run_is_doing() -> None:
    ranks = (
        Rank(0, "running", 1, live_phase="data", live_seconds=0.1),
        Rank(1, "running", 2, live_phase="backward", live_seconds=40.0),
    )
    current = completed(run(ranks=ranks)).runs[0].current
    assert current is not None and (current.rank, current.phase, current.seconds) == (1, "backward", 40.0)


def test_times_of_a_run_come_from_its_own_clock() -> None:
    live = completed(run(first_step_time=scene.NOW - 50.0)).runs[0]
    assert (live.setup_seconds, live.elapsed_seconds) == (10.0, 60.0)
    assert completed(run()).runs[0].setup_seconds is None, "not known before the first step, never 0"


def test_ratios_are_absent_when_a_part_of_them_is() -> None:
    done = completed(gpus=(gpu(memory_used_bytes=1), gpu(1, memory_used_bytes=1, memory_total_bytes=4)))
    assert [one.memory_used_ratio for one in done.gpus] == [None, 0.25]


def test_a_pcie_link_is_judged_by_its_generation_and_width() -> None:
    link = Pcie(4, 5, 8, 16, transmit_bytes_per_second=1.969e9 * 4)
    found = completed(gpus=(gpu(pcie=link),)).gpus[0].pcie
    assert found.limit_bytes_per_second == pytest.approx(1.969e9 * 8)
    assert (found.transmit_ratio, found.receive_ratio) == (pytest.approx(0.5), None)


def test_lists_show_equal_findings_as_one() -> None:
    same = tuple(
        Finding("device.memory_errors", "warning", f"{n} errors", gpu=f"GPU-{n}", cause="Memory errors")
        for n in range(3)
    )
    other = Finding(id="a.b", severity="hint", title="Something", run="a")
    done = completed(run("a"), gpus=(gpu(0), gpu(1), gpu(2)), findings=(*same, other))
    assert [(one.title, one.subject) for one in groups.leads(done)] == [
        ("Memory errors on GPUs 0–2", "GPUs 0–2"),
        ("Something", "resnet"),
    ]


def test_a_run_that_has_ended_promises_nothing_and_stands_behind_what_goes_on() -> None:
    gain = Speedup(1.5, 2.0, 2.5)
    over, live = run("over", name="old", state="ended", ended=scene.NOW), run("live")
    about = tuple(
        Finding("input.no_workers", "warning", id, run=id, speedup=gain, share=0.5) for id in ("over", "live")
    )
    done = completed(over, live, findings=about)
    assert [(one.run, one.speedup) for one in groups.leads(done)] == [("live", gain), ("over", None)]
    assert [one.speedup for one in done.findings] == [gain, gain], "its record keeps what was predicted"


def test_a_crash_stays_in_front_after_its_run() -> None:
    crashed = run("crashed", name="old", state="killed", ended=scene.NOW)
    about = (
        Finding("trend.ended_abnormally", "critical", "Killed", run="crashed"),
        Finding("input.no_workers", "warning", "No workers", run="live"),
    )
    assert [one.run for one in groups.leads(completed(crashed, run("live"), findings=about))] == [
        "crashed",
        "live",
    ]
