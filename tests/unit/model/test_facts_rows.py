"""Facts of single rows: processes on GPUs, ranks against the slowest, shares of links, ages, past runs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from monitor.model import facts
from monitor.model.finding import Finding, Starved
from monitor.model.gpu import Gpu, GpuProcess, MigInstance, Nvlink
from monitor.model.history import RunRecord
from monitor.model.host import Process
from monitor.model.run import Phase, Rank, Run, Times
from monitor.model.snapshot import Snapshot
from tests import scene


def run(id: str = "a", **fields: Any) -> Run:
    base: dict[str, Any] = {"name": "llama", "state": "running", "started": scene.NOW - 60.0, "ranks": ()}
    return Run(id=id, **(base | fields))


def rank(number: int, **fields: Any) -> Rank:
    return Rank(number, "running", 100 + number, gpu_uuid=f"GPU-{number}", **fields)


def completed(**parts: Any) -> Snapshot:
    empty: dict[str, Any] = {"runs": (), "gpus": (), "processes": (), "findings": ()}
    return facts.complete(replace(scene.snapshot(), **(empty | parts)))


def test_a_process_holds_what_the_driver_says_on_all_its_gpus() -> None:
    gpus = (
        Gpu(0, "GPU-0", processes=(GpuProcess(7, memory_bytes=100, sm_ratio=0.2),)),
        Gpu(1, "GPU-1", processes=(GpuProcess(7, memory_bytes=50, sm_ratio=0.6), GpuProcess(8))),
    )
    first, second = completed(gpus=gpus, processes=(Process(7), Process(8))).processes
    assert (first.gpu_indices, first.gpu_uuids) == ((0, 1), ("GPU-0", "GPU-1"))
    assert (first.gpu_memory_bytes, first.gpu_sm_ratio) == (150, 0.6)
    assert (second.gpu_indices, second.gpu_memory_bytes, second.gpu_sm_ratio) == ((1,), None, None)


def test_a_process_only_the_driver_knows_is_listed_once_and_nothing_is_made_up_about_it() -> None:
    once = completed(gpus=(Gpu(0, "GPU-0", processes=(GpuProcess(9, memory_bytes=1),)),))
    [hidden] = facts.complete(once).processes
    assert hidden == Process(9, role="gpu", gpu_uuids=("GPU-0",), gpu_indices=(0,), gpu_memory_bytes=1)


def test_runs_are_called_by_name_and_by_rank_when_they_have_several() -> None:
    wide = run("w", world_size=2, ranks=(rank(0), rank(1)), gpu_uuids=("GPU-0", "GPU-1"))
    alone = run("s", name="resnet", ranks=(rank(0),), gpu_uuids=("GPU-0",))
    processes = (Process(1, run="w", rank=1), Process(2, run="s", rank=0), Process(3, run="gone"), Process(4))
    done = completed(runs=(wide, alone), gpus=(Gpu(0, "GPU-0"), Gpu(1, "GPU-1")), processes=processes)
    assert [gpu.run_labels for gpu in done.gpus] == [("llama r0", "resnet"), ("llama r1",)]
    assert [process.run_label for process in done.processes] == ["llama r1", "resnet", "gone", None]


def test_ranks_are_compared_with_the_slowest() -> None:
    ranks = (rank(0, step=Times(p50=0.1), lost=2, dropped=1), rank(1, step=Times(p50=0.2)), rank(2))
    [done] = completed(runs=(run(ranks=ranks),)).runs
    assert [one.slowest_ratio for one in done.ranks] == [0.5, 1.0, None]
    assert [one.missing_records for one in done.ranks] == [3, 0, 0]


def test_links_and_partitions_are_shares_only_of_what_is_known() -> None:
    known = Gpu(
        0,
        "GPU-0",
        nvlink=Nvlink(transmit_bytes_per_second=1e9, bandwidth_bytes_per_second=4e9),
        mig=(MigInstance("m", memory_used_bytes=1, memory_total_bytes=4), MigInstance("n")),
    )
    first, second = completed(gpus=(known, Gpu(1, "GPU-1", nvlink=Nvlink(receive_bytes_per_second=5.0)))).gpus
    assert (first.nvlink.transmit_ratio, first.nvlink.receive_ratio) == (0.25, None)
    assert [part.memory_used_ratio for part in first.mig] == [0.25, None]
    assert second.nvlink.receive_ratio is None


def test_ages_are_those_at_the_snapshot() -> None:
    now = scene.snapshot().time
    findings = (Finding("a.b", "hint", "", since=now - 5), Finding("c.d", "hint", ""))
    done = completed(findings=findings, processes=(Process(1, started=now - 9), Process(2)))
    assert [finding.age_seconds for finding in done.findings] == [5.0, None]
    assert [process.age_seconds for process in done.processes] == [9.0, None]


@pytest.mark.parametrize(
    ("rule", "phase", "share"), [("input.no_workers", "data", 0.6), ("transfer.sync", "transfer", None)]
)
@pytest.mark.parametrize("named", ["GPU-1", None])
def test_a_finding_about_input_names_the_gpu_that_waits(
    rule: str, phase: str, share: float | None, named: str | None
) -> None:
    waits = run(gpu_uuids=("GPU-1",), phases=(Phase("data", 0.6, 0.1),))
    gpus = (Gpu(0, "GPU-0"), Gpu(1, "GPU-1", utilization_ratio=0.3))
    finding = Finding(rule, "critical", "", run="a", gpu=named)
    [done] = completed(runs=(waits,), gpus=gpus, findings=(finding,)).findings
    assert done.starved == Starved(1, 0.3, phase, share)


def test_other_findings_starve_no_gpu() -> None:
    findings = (Finding("compute.amp_off", "warning", "", run="a"), Finding("input.x", "warning", ""))
    done = completed(runs=(run(gpu_uuids=("GPU-0",)),), gpus=(Gpu(0, "GPU-0"),), findings=findings)
    assert [finding.starved for finding in done.findings] == [None, None]


def test_a_record_of_the_past_has_its_facts_too() -> None:
    """The store corrects the state of a run whose daemon died; facts derived from it must follow."""
    was = run(state="killed", ended=scene.NOW, trend_ratio=0.5, ranks=(rank(0, step=Times(p50=0.1)),))
    done = facts.complete_record(RunRecord(replace(was, condition="running", live=True), (), scene.NOW)).run
    assert (done.condition, done.live, done.trend) == ("killed", False, "collapsed")
    assert done.elapsed_seconds == 60.0 and done.ranks[0].slowest_ratio == 1.0
