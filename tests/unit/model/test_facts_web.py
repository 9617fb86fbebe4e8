"""Facts shown by metrics, the page and the commands: memory and processes by run, alarms, staleness."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from monitor.model import facts
from monitor.model.finding import Finding, Speedup
from monitor.model.gpu import Alarm, Gpu, GpuProcess
from monitor.model.host import Process
from monitor.model.run import Phase, ProcessGroup, Rank, Run
from monitor.model.snapshot import Snapshot
from tests import scene


def run(id: str = "a", **fields: Any) -> Run:
    base: dict[str, Any] = {"name": id.upper(), "state": "running", "started": scene.NOW - 60.0, "ranks": ()}
    return Run(id=id, **(base | fields))


def completed(*runs: Run, **parts: Any) -> Snapshot:
    bare: dict[str, Any] = {"gpus": (), "findings": (), "processes": ()}
    return facts.complete(replace(scene.snapshot(), runs=runs, **(bare | parts)))


def test_a_run_knows_its_gpus_and_a_gpu_the_names_of_its_runs() -> None:
    gpus = (Gpu(0, "GPU-0"), Gpu(1, "GPU-1", processes=(GpuProcess(7),)))
    done = completed(run("a", gpu_uuids=("GPU-0", "GPU-elsewhere"), pids=(7,)), run("b"), gpus=gpus)
    assert done.runs[0].on_gpu_uuids == ("GPU-0", "GPU-elsewhere", "GPU-1")
    assert done.runs[1].on_gpu_uuids == ()
    assert [one.run_labels for one in done.gpus] == [("A",), ("A",)]


def test_device_memory_is_added_up_by_run_and_what_is_not_told_is_left_out() -> None:
    listed = (GpuProcess(1, memory_bytes=3), GpuProcess(2, memory_bytes=4), GpuProcess(3), GpuProcess(9))
    processes = tuple(Process(pid, run="a") for pid in (1, 2, 3))
    done = completed(run(), gpus=(Gpu(0, "GPU-0", processes=listed),), processes=processes)
    assert done.gpus[0].run_memory_bytes == {"a": 7}


def test_processes_are_added_up_by_rank_and_role() -> None:
    processes = (
        Process(1, role="trainer", cpu_ratio=1.0, threads=8, run="a", rank=0),
        Process(2, role="worker", cpu_ratio=0.5, run="a", rank=0),
        Process(3, role="worker", cpu_ratio=0.25, run="a", rank=0),
        Process(4, role="gpu", cpu_ratio=1.0),
    )
    assert completed(run(), processes=processes).runs[0].process_groups == (
        ProcessGroup("trainer", 0, 1, 1.0, None, 8),
        ProcessGroup("worker", 0, 2, 0.75),
    )


def test_the_alarm_of_a_gpu_is_the_first_warning_about_it_or_a_run_on_it() -> None:
    findings = (
        Finding(id="a.hint", severity="hint", title="", gpu="GPU-0"),
        Finding(id="a.run", severity="warning", title="", run="a"),
        Finding(id="a.gpu", severity="critical", title="", gpu="GPU-1"),
    )
    gpus = tuple(Gpu(index, f"GPU-{index}") for index in range(3))
    done = completed(run(gpu_uuids=("GPU-0",)), gpus=gpus, findings=findings)
    assert [one.alarm for one in done.gpus] == [Alarm("a.run", "warning"), Alarm("a.gpu", "critical"), None]


def test_a_finding_about_a_run_that_is_over_is_not_live() -> None:
    findings = tuple(Finding(id="x.y", severity="hint", title="", run=id) for id in ("a", "b", "gone", None))
    done = completed(run("a"), run("b", state="ended", ended=scene.NOW), findings=findings)
    assert [one.live for one in done.findings] == [True, False, False, True]


def test_times_add_up_and_are_absent_without_their_parts() -> None:
    phases = (Phase("data", 0.75, 0.03, total_seconds=3.0), Phase("forward", 0.25, 0.01, total_seconds=1.0))
    rank = Rank(0, "running", 1, phases=phases)
    whole, bare = (
        completed(run(phases=phases, ranks=(rank,), first_step_time=scene.NOW - 50)).runs[0],
        completed(run()).runs[0],
    )
    assert (whole.mean_step_seconds, whole.training_seconds) == (pytest.approx(0.04), 50.0)
    assert whole.ranks[0].total_seconds == 4.0
    assert (bare.mean_step_seconds, bare.training_seconds) == (None, None)


def test_findings_of_a_run_include_those_of_its_gpus() -> None:
    about = [
        Finding(id="a.run", severity="hint", title="", run="a"),
        Finding(id="a.other", severity="hint", title="", run="b"),
        Finding(id="a.gpu", severity="hint", title="", gpu="GPU-0"),
        Finding(id="a.elsewhere", severity="hint", title="", gpu="GPU-1"),
    ]
    own = facts.findings_of(run("a", gpu_uuids=("GPU-0",)), about)
    assert [one.id for one in own] == ["a.run", "a.gpu"]


@pytest.mark.parametrize(("high", "expected"), [(1.02, False), (1.06, True)])
def test_a_gain_is_worth_saying_when_its_best_case_is(high: float, expected: bool) -> None:
    made = Finding(id="a.b", severity="hint", title="", speedup=Speedup(1.0, 1.0, high))
    assert facts.promises(made) is expected
    assert not facts.promises(replace(made, speedup=None))


@pytest.mark.parametrize(("interval", "expected"), [(0.2, 2.0), (1.0, 3.0), (10.0, 30.0)])
def test_a_snapshot_is_stale_when_the_next_is_overdue(interval: float, expected: float) -> None:
    done = facts.complete(replace(scene.snapshot(), interval_seconds=interval))
    assert done.stale_after_seconds == expected
