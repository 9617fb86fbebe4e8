"""Realistic snapshots for every situation the screens must show, made without a daemon or a GPU.

A scene is a list of ticks: the trails (graphs) come from feeding them one after the other. All
numbers follow from the tick and the index, so a golden file never changes by itself.
"""

# ruff: noqa: E501 — tables of figures, one fact a line

from collections.abc import Callable
from functools import lru_cache

import msgspec

from monitor.model import facts
from monitor.model.finding import Finding
from monitor.model.gpu import Errors, Gpu, MigInstance, Source
from monitor.model.host import Process
from monitor.model.run import Device, Run, RunState
from monitor.model.snapshot import Collector, Snapshot
from tests.tui.props import (
    AMP,
    CHECKPOINT,
    ECC,
    FINE,
    GIB,
    HEALTHY,
    HUNG,
    LOST,
    NO_WORKERS,
    NOW,
    POWER,
    STARVED,
    TICKS,
    gpu,
    host,
    idle,
    process,
    run,
    wave,
)


def snapshot(
    tick: int,
    gpus: tuple[Gpu, ...],
    runs: tuple[Run, ...] = (),
    findings: tuple[Finding, ...] = (),
    processes: tuple[Process, ...] = (),
    *,
    simulated: bool = True,
    name: str = "lab-07",
    cores: int = 64,
) -> Snapshot:
    source = Source("simulated" if simulated else "nvml", True, None, "570.86.15", "12.8", "12.570.86")
    return facts.complete(Snapshot(
        seq=tick, time=NOW - TICKS + tick, monotonic=1000.0 + tick, interval_seconds=1.0, source=source, host=host(tick, name, cores=cores), gpus=gpus,
        processes=processes, runs=runs, findings=findings, collectors=(Collector("gpu", True, 0.004, NOW), Collector("host", True, 0.006, NOW), Collector("runs", True, 0.002, NOW)), version="0.1.0"))  # fmt: skip


def _workers(parent: int, count: int, run_id: str, tick: int) -> tuple[Process, ...]:
    return tuple(
        process(
            parent * 10 + i,
            role="worker",
            parent=parent,
            run_id=run_id,
            number=0,
            tick=tick,
            command="python train.py (pt_data_worker)",
        )
        for i in range(count)
    )


def no_gpu(tick: int) -> Snapshot:
    snap = snapshot(tick, ())
    none = Source("none", False, "NVML library not found: is the NVIDIA driver installed?")
    made = msgspec.structs.replace(
        snap,
        source=none,
        runs=(_cpu_run(),),
        processes=(process(4100, run_id="tcn-cpu-8f3a21", number=0, tick=tick),),
    )
    return facts.complete(made)


def _cpu_run() -> Run:
    made = run("tcn-cpu", HEALTHY, 0.041, batch=512)
    plain = tuple(
        msgspec.structs.replace(r, gpu_uuid=None, device="cpu", device_times=Device()) for r in made.ranks
    )
    return msgspec.structs.replace(made, ranks=plain, gpu_uuids=(), starved_ratio=None)


def data_bound(tick: int) -> Snapshot:
    found = (NO_WORKERS, AMP, CHECKPOINT)
    trainer = process(
        4100,
        run_id=NO_WORKERS.run,
        number=0,
        tick=tick,
        command="python train.py --name resnet50-naive --batch 64",
    )
    return snapshot(
        tick, (gpu(0, tick, low=0.12, high=0.5),), (run("resnet50-naive", STARVED, 0.312),), found, (trainer,)
    )


def one_busy(tick: int) -> Snapshot:
    fine = msgspec.structs.replace(FINE, run="resnet50-fast-8f3a21")
    made = run("resnet50-fast", HEALTHY, 0.121)
    busy = process(4100, run_id=made.id, number=0, tick=tick)
    return snapshot(tick, (gpu(0, tick),), (made,), (fine,), (busy, *_workers(4100, 6, made.id, tick)))


def no_run(tick: int) -> Snapshot:
    return snapshot(tick, tuple(idle(i, tick) for i in range(8)))


def eight(tick: int) -> Snapshot:
    """Four runs on eight GPUs, one of them starved, fifty processes."""
    runs = (
        run("llama-ft", HEALTHY, 0.84, ranks=4, batch=16),
        run("resnet50-naive", STARVED, 0.312, first=4),
        run("unet-tom500", HEALTHY | {"data": 0.09, "backward": 0.49}, 0.19, first=5, ranks=2, trend=0.71),
        run("reid-pk", HEALTHY, 0.066, first=7, batch=32),
    )
    gpus = tuple(gpu(i, tick, low=0.12, high=0.5) if i == 4 else gpu(i, tick) for i in range(8))
    trainers = tuple(process(m.pid, run_id=r.id, number=m.rank, tick=tick) for r in runs for m in r.ranks)
    workers = tuple(
        w
        for r in runs
        for m in r.ranks[:7]
        for w in _workers(m.pid, 6, r.id, tick)
        if r.name != "resnet50-naive"
    )
    found = (
        msgspec.structs.replace(NO_WORKERS, gpu="GPU-0004"),
        msgspec.structs.replace(AMP, gpu="GPU-0004"),
        CHECKPOINT,
        FINE,
    )
    return snapshot(tick, gpus, runs, found, (trainers + workers)[:50])


def sixteen(tick: int) -> Snapshot:
    runs = (run("llama-ft", HEALTHY, 0.84, ranks=16, batch=16, skew=0.2),)
    trainers = tuple(process(m.pid, run_id=runs[0].id, number=m.rank, tick=tick) for m in runs[0].ranks)
    return snapshot(tick, tuple(gpu(i, tick) for i in range(16)), runs, (FINE,), trainers)


def lost(tick: int) -> Snapshot:
    snap = eight(tick)
    if tick < TICKS - 64:
        return snap
    gone = msgspec.structs.replace(
        snap.gpus[5],
        state="lost",
        state_detail="no longer on the bus (XID 79)",
        age_seconds=64.0,
        errors=Errors(xid_counts={"79": 1}, xid_last=79, xid_last_time=NOW - 64),
    )
    hung = msgspec.structs.replace(
        snap.gpus[6], state="hung", state_detail="the driver has not answered for 12 s", age_seconds=12.0
    )
    gpus = (*snap.gpus[:5], gone, hung, snap.gpus[7])
    return facts.complete(msgspec.structs.replace(snap, gpus=gpus, findings=(LOST, *snap.findings)))


def mig(tick: int) -> Snapshot:
    parts = tuple(
        MigInstance(
            f"MIG-{i}", f"{size}g.{size * 10}gb", i, 0, int(wave(tick, i, 2, size * 9) * GIB), size * 10 * GIB
        )
        for i, size in enumerate((3, 2, 1, 1))
    )
    card = msgspec.structs.replace(
        gpu(0, tick), mig_enabled=True, mig=parts, utilization_ratio=None, memory_utilization_ratio=None
    )
    return snapshot(
        tick,
        (card, gpu(1, tick)),
        (run("reid-pk", HEALTHY, 0.066, first=1, batch=32),),
        (msgspec.structs.replace(FINE, run="reid-pk-8f3a21"),),
    )


def hung(tick: int) -> Snapshot:
    made = run("llama-ft", HEALTHY, 0.84, ranks=8, batch=16, state="stalled", live=("backward", 252.0))
    ranks = tuple(
        r if r.rank == 3 else msgspec.structs.replace(r, live_phase="backward", live_seconds=251.0)
        for r in made.ranks
    )
    made = msgspec.structs.replace(made, ranks=ranks, iterations_per_second=0.0, samples_per_second=0.0)
    return snapshot(
        tick,
        tuple(gpu(i, tick, low=0.99, high=1.0) for i in range(8)),
        (made,),
        (HUNG,),
        tuple(process(r.pid, run_id=made.id, number=r.rank, tick=tick) for r in ranks),
    )


def throttled(tick: int) -> Snapshot:
    hot = tick > 60
    cards = [gpu(i, tick) for i in range(4)]
    if hot:
        cards[2] = msgspec.structs.replace(
            cards[2],
            sm_clock_hertz=1.32e9,
            power_watts=349.0,
            power_limit_watts=350.0,
            throttle={"sw_power_cap": True, "hw_slowdown": False, "sw_thermal_slowdown": tick % 20 > 12},
        )
    return snapshot(
        tick, tuple(cards), (run("llama-ft", HEALTHY, 0.84, ranks=4, batch=16, skew=0.3),), (POWER,)
    )


def consumer(tick: int) -> Snapshot:
    """A card that tells little: absence everywhere, real source."""
    bare = Gpu(
        0,
        "GPU-7777",
        "NVIDIA GeForce GTX 1650",
        utilization_ratio=0.4,
        memory_used_bytes=2 * GIB,
        memory_total_bytes=4 * GIB,
        temperature_celsius=61,
    )
    return snapshot(tick, (bare,), simulated=False, cores=8)


def many(tick: int) -> Snapshot:
    """24 GPUs, six of them at work, six runs: one hangs, one failed."""
    runs = (
        run("llama-ft", HEALTHY, 0.84, ranks=2, batch=16),
        run("resnet50-naive", STARVED, 0.312, first=2, trend=0.13),
        run("stuck-job", HEALTHY, 0.19, first=3, state="stalled", live=("backward", 603.0)),
        run("unet-tom500", HEALTHY, 0.19, first=4),
        run("reid-pk", HEALTHY, 0.066, first=5, batch=32),
        _failed(run("vit-sweep", HEALTHY, 0.4, first=6, state="failed")),
    )
    busy = tuple(gpu(i, tick, low=0.12, high=0.5) if i == 2 else gpu(i, tick) for i in range(6))
    rest = tuple(idle(i, tick) for i in range(6, 24))
    trainers = tuple(process(m.pid, run_id=r.id, number=m.rank, tick=tick) for r in runs[:5] for m in r.ranks)
    memory = tuple(
        msgspec.structs.replace(ECC, gpu=f"GPU-{i:04d}", title=f"Memory errors on GPU {i}: remapping pending")
        for i in (7, 8, 9)
    )
    stuck = msgspec.structs.replace(
        HUNG,
        run="stuck-job-8f3a21",
        rank=None,
        title="Hung in backward: no step for 10 min 03 s",
    )
    found = (stuck, msgspec.structs.replace(NO_WORKERS, gpu="GPU-0002"), *memory, AMP)
    return snapshot(tick, (*busy, *rest), runs, found, trainers)


def _failed(made: Run) -> Run:
    return msgspec.structs.replace(made, ended=NOW - 700, error="OutOfMemoryError")


def thirty(tick: int) -> Snapshot:
    """30 runs on 24 busy GPUs, some of them over."""
    states: tuple[RunState, ...] = ("running",) * 22 + ("ended",) * 5 + ("failed",) * 2 + ("killed",)
    runs = tuple(
        run(f"sweep-{n:02d}", STARVED if n % 7 == 3 else HEALTHY, 0.1 + n * 0.02, first=n % 24, state=state)
        for n, state in enumerate(states)
    )
    gpus = tuple(gpu(i, tick, low=0.12, high=0.5) if i % 7 == 3 else gpu(i, tick) for i in range(24))
    found = tuple(
        msgspec.structs.replace(NO_WORKERS, run=f"sweep-{n:02d}-8f3a21", gpu=f"GPU-{n:04d}")
        for n in (3, 10, 17)
    )
    return snapshot(tick, gpus, runs, found)


SCENES: dict[str, Callable[[int], Snapshot]] = {
    "no-gpu": no_gpu, "data-bound": data_bound, "one-busy": one_busy, "no-run": no_run, "eight": eight, "sixteen": sixteen,
    "lost": lost, "mig": mig, "hung": hung, "throttled": throttled, "consumer": consumer,
    "many": many, "thirty": thirty,
}  # fmt: skip


@lru_cache(maxsize=32)
def ticks(name: str, count: int = TICKS) -> list[Snapshot]:
    """The scene's last `count` ticks, the newest at `NOW`."""
    return [SCENES[name](tick) for tick in range(TICKS - count + 1, TICKS + 1)]
