"""What the lanes of host and device in a run say: which causes are named, and what is promised for them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from monitor.advice.context.run import RunContext
from monitor.advice.engine import Engine
from monitor.advice.evidence.waits import selects
from monitor.model.devices import by_device
from monitor.model.finding import Finding
from monitor.model.host import Cpu, Pressure
from monitor.model.policy import DEFAULT_POLICY
from monitor.model.run import Device, OtherDevice, Run
from monitor.model.units import percent
from tests.unit.advice.build import (
    GIB,
    cuda_run,
    gpu_of,
    loader_config,
    piece,
    rank_of,
    snapshot_of,
    trainer_process,
)
from tests.unit.advice.shapes import BUSY, LAUNCH_BOUND, ONE_GPU, host

PASSES = {"forward": 0.004, "backward": 0.005, "optimizer": 0.001}
FP32 = {"precision": {"autocast": False}, "model": {"dtype": "float32", "compiled": False}}


def found(run: Run) -> dict[str, Finding]:
    return {finding.id: finding for finding in Engine().once(snapshot_of(run, **ONE_GPU)).findings}


def on_device(seconds: dict[str, float], device: Device, **changes: object) -> Run:
    return cuda_run(seconds, rank={"device_times": device}, **changes)


def test_lanes_that_do_not_add_up_promise_nothing() -> None:
    run = on_device({name: 10 * took for name, took in PASSES.items()}, LAUNCH_BOUND, config=FP32)
    context = RunContext(snapshot_of(run, **ONE_GPU), run, DEFAULT_POLICY)
    assert context.lanes is None and context.lanes_contradict
    assert all(finding.speedup is None for finding in found(run).values())


def test_loading_hidden_behind_the_device_is_no_cause() -> None:
    device = msgspec.structs.replace(BUSY, time=BUSY.time | {"data": 0.0}, idle={"data": 0.0})
    seconds = {"data": 0.006, "forward": 0.002, "backward": 0.0015, "optimizer": 0.0005}
    assert not any(
        id.startswith("input.") for id in found(on_device(seconds, device, config=loader_config(0)))
    )


def test_a_launch_bound_run_is_not_told_to_use_less_precision() -> None:
    said = found(on_device(PASSES, LAUNCH_BOUND, config=FP32))
    assert "compute.launch_bound" in said and "compute.amp_off" not in said
    gain = said["compute.launch_bound"].speedup
    assert gain is not None and gain.likely <= 10.0, "the device's work stays"
    assert gain.high <= 26.0, "but for what fewer kernels take"


def test_a_device_bound_run_is() -> None:
    said = found(on_device(PASSES, BUSY, config=FP32))
    gain = said["compute.amp_off"].speedup
    assert "compute.launch_bound" not in said and gain is not None and gain.likely > 1.3


def test_lower_precision_helps_as_far_as_the_work_is_products_of_matrices() -> None:
    def promised(matrix: float) -> float:
        kernels = [{"name": "sgemm", "share": matrix}, {"name": "elementwise", "share": 1.0 - matrix}]
        said = found(on_device(PASSES, BUSY, config={**FP32, "kernels": kernels}))
        gain = said["compute.amp_off"].speedup if "compute.amp_off" in said else None
        return gain.likely if gain else 1.0

    assert promised(0.9) > promised(0.5) > promised(0.1)
    assert promised(0.1) < 1.1


@pytest.mark.parametrize(
    ("name", "silent"), [("sgemm_128x128", False), ("ampere_s1688gemm_fp16_128x128", True)]
)
def test_tf32_is_not_off_where_tensor_cores_work(name: str, silent: bool) -> None:
    precision = {"autocast": False, "matmul_tf32": False}
    config = {**FP32, "precision": precision, "kernels": [{"name": name, "share": 0.9}]}
    said = found(on_device(PASSES, BUSY, config=config))
    assert ("compute.tf32_off" not in said) is silent


@pytest.mark.parametrize(("seconds", "speaks"), [(0.004, True), (0.0, False), (None, False)])
def test_an_exchange_nothing_hides_is_known_from_its_kernels(seconds: float | None, speaks: bool) -> None:
    device = msgspec.structs.replace(BUSY, exchange_seconds=seconds)
    said = found(on_device(PASSES, device, world_size=2)).get("distributed.collective_wait")
    assert (said is not None) is speaks
    if said is not None:
        assert said.speedup is not None and 1.1 < said.speedup.likely < 1 / (1 - 0.4)


def test_a_crowded_host_does_not_matter_to_a_busy_device() -> None:
    crowded = {
        "host": host(cpu=Cpu(2, 0.99, pressure=Pressure(0.6))),
        "processes": (trainer_process(cpu_ratio=0.5),),
    }
    for device, speaks in ((LAUNCH_BOUND, True), (BUSY, False)):
        said = Engine().once(snapshot_of(on_device(PASSES, device), **ONE_GPU, **crowded)).findings
        assert ("compute.contention" in {one.id for one in said}) is speaks


def test_a_wait_that_leaves_no_gap_is_no_cause() -> None:
    seconds = PASSES | {"between": 0.0}
    scalars = {"sync.items_per_step": 1.0, "sync.seconds_per_step": 0.009}
    run = cuda_run(seconds, rank={"device_times": BUSY, "scalars": scalars})
    assert "compute.sync_every_step" not in found(run)


READING = msgspec.structs.replace(
    LAUNCH_BOUND,
    busy_ratio=0.4,
    starved_ratio=0.6,
    bound="sync",
    idle={name: 0.6 * took for name, took in PASSES.items()},
    syncs=21.0,
    sync_idle_seconds=0.005,
)
READS: list[list[Any]] = [
    ["forward", 2400.0, 1600.0, 0.0, 0.0, 10, 10, 0],
    ["backward", 3000.0, 2000.0, 0.0, 0.0, 10, 10, 0],
    ["optimizer", 600.0, 400.0, 0.0, 0.0, 1, 1, 0],
]
"""The host waits for every kernel."""


def test_gaps_behind_waits_are() -> None:
    said = found(on_device(PASSES, READING, config={"step_graph": {"steps": 1, "segments": READS}}))
    gain = said["compute.sync_every_step"].speedup
    assert gain is not None and gain.likely == pytest.approx(10 / 6, rel=0.05)
    assert gain.low < gain.likely < gain.high <= 1 / 0.4


def test_a_graph_that_does_not_show_the_step_promises_nothing() -> None:
    """GIVEN a graph with far more work than the device had THEN it is not used."""
    much = [[name, own, 20 * work, *more] for name, own, work, *more in READS]
    run = on_device(PASSES, READING, config={"step_graph": {"steps": 1, "segments": much}})
    lanes = RunContext(snapshot_of(run, **ONE_GPU), run, DEFAULT_POLICY).lanes
    assert lanes is not None and lanes.graph.work == pytest.approx(0.004)


def test_evaluating_too_often_is_a_cause_where_the_device_is_busy_with_it() -> None:
    time = {**BUSY.time, "validate": 0.010}
    device = msgspec.structs.replace(BUSY, time=time)
    said = found(on_device(PASSES | {"validate": 0.010}, device))
    gain = said["compute.validation_too_often"].speedup
    assert gain is not None and 1.3 < gain.likely <= 2.0
    waits = msgspec.structs.replace(BUSY, time={**BUSY.time, "backward": 0.013, "validate": 0.002})
    assert "compute.validation_too_often" not in found(on_device(PASSES | {"validate": 0.010}, waits))


def test_a_larger_batch_does_not_fill_the_gaps_of_a_checkpoint() -> None:
    memory = {"cuda.max_allocated_bytes": 2e9, "cuda.reserved_bytes": 3e9}
    gaps = {"busy_ratio": 0.4, "starved_ratio": 0.6, "bound": "host"}

    def said(time: dict[str, float], idle: dict[str, float]) -> dict[str, Finding]:
        device = msgspec.structs.replace(LAUNCH_BOUND, time=time, idle=idle, kernels=20.0, **gaps)
        run = cuda_run(time, rank={"device_times": device, "scalars": memory})
        gpu = gpu_of(utilization_ratio=0.4, memory_used_bytes=4 * GIB)
        return {one.id: one for one in Engine().once(snapshot_of(run, gpus=(gpu,))).findings}

    passes = said({"forward": 0.010, "backward": 0.010}, {"forward": 0.006, "backward": 0.006})
    assert "compute.batch_room" in passes or "compute.launch_bound" in passes
    saves = said({"forward": 0.004, "backward": 0.004, "checkpoint": 0.012}, {"checkpoint": 0.012})
    assert "compute.batch_room" not in saves
    assert "of the host's time" in saves["compute.checkpoint_stalls"].title


def test_copies_in_the_gaps_are() -> None:
    device = msgspec.structs.replace(
        LAUNCH_BOUND,
        copy_idle_seconds=0.006,
        copy_seconds=0.006,
        idle={"forward": 0.007},
        starved_ratio=0.7,
        busy_ratio=0.3,
    )
    graph = [
        ["forward", 100.0, 0.0, 6000.0, 0.0, 1, 0, 1],
        ["forward", 900.0, 1000.0, 0.0, 0.0, 90, 0, 0],
        ["backward", 1000.0, 1000.0, 0.0, 0.0, 90, 0, 0],
        ["optimizer", 500.0, 1000.0, 0.0, 0.0, 9, 0, 0],
    ]
    scalars = {"transfer.blocking_per_step": 2.0, "transfer.bytes_per_step": 6e6}
    host = {"forward": 0.007, "backward": 0.002, "optimizer": 0.001}
    rank = {"device_times": msgspec.structs.replace(device, time=host), "scalars": scalars}
    said = found(cuda_run(host, rank=rank, config={"step_graph": {"steps": 1, "segments": graph}}))
    assert next(iter(said)) == "transfer.blocking_copies"
    gain = said["transfer.blocking_copies"].speedup
    assert gain is not None and 1.5 < gain.low < gain.likely < gain.high <= 3.5


@pytest.mark.parametrize("exchange", [0.0002, 0.0])
def test_the_rank_that_waits_least_in_the_exchange_is_late(exchange: float) -> None:
    """GIVEN three ranks with equal host times, one of which computes longer and hardly waits for the others
    THEN it is the straggler, and its device shows where it differs."""
    usual = msgspec.structs.replace(BUSY, exchange_seconds=0.0025)
    late = msgspec.structs.replace(
        BUSY, time={"forward": 0.006, "backward": 0.003, "optimizer": 0.001}, exchange_seconds=exchange
    )
    on = {"device": "cuda:0", "gpu_uuid": "GPU-a"}
    ranks = tuple(
        rank_of(PASSES, rank=number, device_times=device, **on)
        for number, device in enumerate((usual, late, usual))
    )
    said = found(msgspec.structs.replace(cuda_run(PASSES, world_size=3), ranks=ranks))
    straggler = said["distributed.straggler"]
    assert (straggler.rank, straggler.evidence["phase"]) == (1, "forward")
    assert straggler.speedup is not None and straggler.speedup.likely == pytest.approx(
        1 / (1 - 0.22), rel=0.05
    )


def with_another(run: Run, other: OtherDevice) -> Run:
    (rank,) = run.ranks
    return msgspec.structs.replace(run, ranks=(msgspec.structs.replace(rank, other_devices=(other,)),))


@pytest.mark.parametrize("idle", [0.62, None])
def test_a_gap_that_may_be_the_work_of_another_device_promises_nothing(idle: float | None) -> None:
    """GIVEN a process with two devices THEN each is named, and no gain is derived from the gaps of one."""
    run = with_another(on_device(PASSES, LAUNCH_BOUND, config=FP32), OtherDevice("cuda:1", idle, 40.0))
    assert all(finding.speedup is None for finding in found(run).values())
    assert by_device(run).endswith(f"cuda:1 idle {'unknown' if idle is None else percent(idle)}")


def test_a_device_that_only_holds_memory_changes_nothing() -> None:
    alone = on_device(PASSES, LAUNCH_BOUND, config=FP32)
    beside = with_another(alone, OtherDevice("cuda:1", None, 0.0))
    assert found(beside) == found(alone) and by_device(beside) == ""


def test_a_second_device_that_is_busy_makes_the_hosts_time_no_cause() -> None:
    """GIVEN a first device that waits for the second THEN what would only save the host's time is silent."""
    run = with_another(on_device(PASSES, LAUNCH_BOUND, config=FP32), OtherDevice("cuda:1", 0.02, 40.0))
    assert not [one for one in found(run) if one.startswith(("input.", "compute.user_code", "compute.sync"))]


def test_a_gpu_that_waits_for_reasons_unknown_is_not_called_fine() -> None:
    """GIVEN a GPU without work for 27 % of the time WHEN no rule knows why THEN the verdict says so."""
    fast = {"precision": {"autocast": True}, "model": {"dtype": "bfloat16", "compiled": True}}
    unclear = msgspec.structs.replace(BUSY, starved_ratio=0.27, bound="unknown")
    run = on_device(PASSES, unclear, config=fast)
    only = found(run)
    assert list(only) == ["healthy.ok"]
    assert "the GPU has no work for 27 % of the time" in only["healthy.ok"].title
    assert "gpumon profile" in only["healthy.ok"].remedy.summary
    busy = found(on_device(PASSES, BUSY, config=fast))["healthy.ok"]
    assert "no work for 2 %" in busy.title and "gpumon profile" not in busy.remedy.summary


@pytest.mark.parametrize(
    ("code", "picks"),
    [
        ("chosen = pred[:, c][hit]", True),
        ("x = x[x > 0]", True),
        ("rows = mask.nonzero()", True),
        ("running += loss.item()", False),
        ("total = float(losses[mask].sum())", False),
        ("x = x[:, 3]", False),
        ("loss.backward()", False),
        ("not python at all (", False),
    ],
)
def test_a_line_that_selects_needs_another_remedy_than_one_that_reads(code: str, picks: bool) -> None:
    assert selects(code) is picks
    line = {"file": "train.py", "line": 7, "code": code, "per_step": 10.0}
    config = {"step_graph": {"steps": 1, "segments": READS}, "syncs": [line]}
    said = found(on_device(PASSES, READING, config=config))["compute.sync_every_step"]
    assert ("torch.where" in said.remedy.summary) is picks


EVALUATES = [
    piece("between", "best = min(best, validate())", 1.0, job="metrics", no_grad=True),
    piece("validate", "best = min(best, validate())", 1.0, job="metrics", no_grad=True),
]
"""A call that evaluates, and reads its total at the end: that part is in no phase of its own."""
WAITED_AT_ITS_END = PASSES | {"validate": 0.001, "between": 0.009}


def test_the_read_at_the_end_of_an_evaluation_is_part_of_it() -> None:
    device = msgspec.structs.replace(BUSY, time={**BUSY.time, "validate": 0.010})
    said = found(on_device(WAITED_AT_ITS_END, device, config={"work": EVALUATES}))
    assert "compute.metrics_every_step" not in said
    gain = said["compute.validation_too_often"].speedup
    assert gain is not None and 1.3 < gain.likely <= 2.0


def test_host_time_is_no_cause_where_the_device_is_busy_and_nothing_can_be_replayed() -> None:
    """GIVEN a busy device whose times do not add up to the step THEN only its own work is a cause."""
    short = msgspec.structs.replace(BUSY, time={name: took / 4 for name, took in BUSY.time.items()})
    logs = {"work": [piece("between", "journal.write(text)", 1.0, job="log")]}
    assert "compute.logging_too_often" not in found(on_device(PASSES | {"between": 0.01}, short, config=logs))


def test_reads_that_take_longer_than_the_step_are_not_believed() -> None:
    reads = {"sync.items_per_step": 0.25, "sync.seconds_per_step": 0.02}
    run = cuda_run(PASSES | {"sync": 0.002}, rank={"scalars": reads})
    assert "compute.sync_every_step" not in found(run)
