"""What scenes are made of: machines, GPUs, runs and findings with figures like real ones."""

# ruff: noqa: E501 — tables of figures, one fact a line

import math
from typing import Literal

import msgspec

from monitor.model.finding import Finding, Remedy, Speedup
from monitor.model.gpu import Activity, Errors, Gpu, GpuProcess, Nvlink, Pcie
from monitor.model.host import Cgroup, Cpu, Disk, Host, Memory, Network, Pressure, Process
from monitor.model.run import Device, LoaderTimes, Phase, Rank, Run, RunState, Stall, Times, Window

NOW = 1_780_000_000.0
GIB = 2**30
TICKS = 120

HEALTHY = {
    "data": 0.03,
    "transfer": 0.02,
    "forward": 0.31,
    "backward": 0.55,
    "optimizer": 0.07,
    "other": 0.02,
}
STARVED = {
    "data": 0.62,
    "transfer": 0.04,
    "forward": 0.11,
    "backward": 0.18,
    "optimizer": 0.03,
    "other": 0.02,
}


def wave(tick: int, index: int, low: float, high: float, period: float = 17.0) -> float:
    """A smooth figure between two bounds."""
    turn = math.sin(tick / period * 6.28 + index * 1.7) * 0.6 + math.sin(tick * 1.93 + index) * 0.4
    return low + (high - low) * (turn + 1) / 2


def gpu(
    index: int,
    tick: int,
    *,
    low: float = 0.93,
    high: float = 0.99,
    simulated: bool = True,
    pid: int | None = None,
) -> Gpu:
    """One H100 with a use between `low` and `high`."""
    use = wave(tick, index, low, high)
    return Gpu(
        index=index, uuid=f"GPU-{index:04d}", name="NVIDIA H100 80GB HBM3", simulated=simulated,
        pci_bus_id=f"0000:{0x18 + index * 8:02x}:00.0", minor=index, architecture="hopper", compute_capability="9.0",
        utilization_ratio=round(use, 3), memory_utilization_ratio=round(use * 0.55, 3),
        encoder_utilization_ratio=0.0, decoder_utilization_ratio=0.0,
        memory_used_bytes=int((12 + 58 * min(1.0, use + 0.02)) * GIB), memory_total_bytes=80 * GIB, memory_reserved_bytes=GIB // 2,
        power_watts=round(90 + 580 * use, 1), power_limit_watts=700.0, energy_joules=3.1e7 + tick * 400,
        temperature_celsius=round(38 + 30 * use), temperature_slowdown_celsius=87, temperature_shutdown_celsius=92,
        memory_temperature_celsius=round(44 + 34 * use), memory_temperature_limit_celsius=95,
        sm_clock_hertz=1.98e9, sm_clock_max_hertz=1.98e9, memory_clock_hertz=2.619e9, memory_clock_max_hertz=2.619e9,
        pstate=0, throttle={"gpu_idle": False, "sw_power_cap": False, "hw_slowdown": False, "sw_thermal_slowdown": False, "hw_thermal_slowdown": False},
        pcie=Pcie(generation=5, generation_max=5, width=16, width_max=16, transmit_bytes_per_second=1.1e9 * use, receive_bytes_per_second=4.2e9 * use, replays=0),
        nvlink=Nvlink(links_active=18, transmit_bytes_per_second=41e9 * use, receive_bytes_per_second=40e9 * use, bandwidth_bytes_per_second=450e9),
        errors=Errors(ecc_corrected_volatile=0, ecc_uncorrected_volatile=0, ecc_corrected_aggregate=2, ecc_uncorrected_aggregate=0, remapped_rows_corrected=0, remapped_rows_uncorrected=0, remapped_rows_pending=False, remapped_rows_failed=False),
        activity=Activity(round(use * 0.9, 3), round(use * 0.48, 3), round(use * 0.41, 3), round(use * 0.37, 3)),
        mig_enabled=False,
        processes=(GpuProcess(pid or 4100 + index, "compute", int(58 * use * GIB), round(use, 3)),),
    )  # fmt: skip


def idle(index: int, tick: int) -> Gpu:
    """A GPU nobody uses."""
    return msgspec.structs.replace(
        gpu(index, tick), utilization_ratio=0.0, memory_used_bytes=int(0.6 * GIB), power_watts=71.0 + index % 3,
        temperature_celsius=33 + index % 4, sm_clock_hertz=3.45e8, processes=(), pstate=8,
        memory_utilization_ratio=0.0, activity=Activity(0.0, 0.0, 0.0, 0.0),
        pcie=Pcie(generation=1, generation_max=5, width=16, width_max=16, transmit_bytes_per_second=0.0, receive_bytes_per_second=0.0), nvlink=Nvlink(links_active=18, transmit_bytes_per_second=0.0, receive_bytes_per_second=0.0, bandwidth_bytes_per_second=450e9), throttle={"gpu_idle": True},
    )  # fmt: skip


def host(tick: int, name: str = "lab-07", *, cores: int = 64, use: float = 0.34) -> Host:
    busy = wave(tick, 3, use * 0.8, min(1.0, use * 1.2))
    return Host(
        hostname=name, kernel="Linux 6.8.0", boot_time=NOW - 9e5,
        cpu=Cpu(cores=cores, utilization_ratio=round(busy, 3), per_core_ratio=tuple(round(wave(tick, c, 0, min(1, use * 2)), 2) for c in range(cores)), user_ratio=busy * 0.8, system_ratio=busy * 0.2, iowait_ratio=0.01, load_1m=21.4, load_5m=19.8, load_15m=18.1, pressure=Pressure(some_ratio=0.031)),
        memory=Memory(total_bytes=512 * GIB, available_bytes=394 * GIB, used_bytes=118 * GIB, cached_bytes=80 * GIB, swap_total_bytes=8 * GIB, swap_used_bytes=0, pressure=Pressure(some_ratio=0.0)),
        disks=(Disk("nvme0n1", read_bytes_per_second=wave(tick, 5, 1e8, 4e8), write_bytes_per_second=wave(tick, 6, 1e6, 6e7), busy_ratio=0.22),), networks=(Network("eth0", wave(tick, 7, 1e6, 9e7), wave(tick, 8, 1e6, 3e7)),),
        io_pressure=Pressure(some_ratio=0.12, full_ratio=0.04),
        cgroup=Cgroup(), shm_free_bytes=60 * GIB,
    )  # fmt: skip


def phases(shares: dict[str, float], step: float, total: float = 9000.0) -> tuple[Phase, ...]:
    return tuple(
        Phase(
            name=n,
            share=s,
            mean_seconds=s * step,
            p50_seconds=s * step * 0.97,
            p95_seconds=s * step * 1.3,
            total_seconds=s * total,
        )
        for n, s in shares.items()
    )


def times(step: float, count: int = 512) -> Times:
    return Times(
        count=count,
        mean=step,
        p50=step * 0.98,
        p95=step * 1.14,
        p99=step * 1.4,
        min=step * 0.9,
        max=step * 2.1,
        stddev=step * 0.08,
    )


def timeline(
    shares: dict[str, float], step: float, batch: int, *, windows: int = 48, decay: float = 0.0
) -> tuple[Window, ...]:
    """A run's past: noise on the shares, a checkpoint and a validation now and then, a falling loss."""
    out = []
    for index in range(windows):
        slow = 1 + decay * index / windows
        noise = 1 + 0.12 * math.sin(index * 1.3)
        data = min(0.9, shares["data"] * noise * (slow if decay else 1))
        rest = (1 - data) / (1 - shares["data"])
        parts = {name: (data if name == "data" else share * rest) for name, share in shares.items()}
        stalls = ("validate",) if index % 16 == 15 else ("checkpoint",) if index % 12 == 11 else ()
        stalls = ("recompile",) if index == 1 else stalls
        if stalls:
            parts = {name: share * 0.75 for name, share in parts.items()} | {stalls[0]: 0.25}
        length = step * slow * noise
        out.append(Window(
            start=NOW - (windows - index) * 60, seconds=60.0, first_step=int(index * 60 / step), steps=int(60 / length), steps_seconds=60.0, step_p50=length * 0.98,
            step_p95=length * 1.15, step_max=length * (9 if stalls else 1.6), samples_per_second=batch / length, phases=parts, starved_ratio=round(data * 0.9, 3),
            loss=2.3 * math.exp(-index / 18) + 0.31 + 0.02 * math.sin(index), rss_bytes=int((3.1 + index * 0.01) * GIB), device_memory_bytes=int(11.6 * GIB),
            gpu_utilization_ratio=1 - data, sm_clock_hertz=1.98e9, stalls=stalls))  # fmt: skip
    return tuple(out)


def rank(
    number: int,
    shares: dict[str, float],
    step: float,
    *,
    batch: int = 64,
    pid: int = 4100,
    steps: int = 12_431,
    gpu_uuid: str | None = None,
    live: tuple[str, float] = ("forward", 0.02),
    state: RunState = "running",
    world: int = 1,
) -> Rank:
    return Rank(
        rank=number, state=state, pid=pid, local_rank=number, hostname="lab-07", gpu_uuid=gpu_uuid or f"GPU-{number:04d}", device=f"cuda:{number}",
        steps=steps, samples=steps * batch, epoch=7, warmup_steps=12, live_phase=live[0], live_seconds=live[1], last_step_time=NOW - 0.2,
        step=times(step), whole=times(step * 1.02, steps), phases=phases(shares, step), iterations_per_second=1 / step, samples_per_second=batch / step,
        device_times=Device(busy_ratio=1 - shares["data"], starved_ratio=shares["data"] * 0.95, lag_seconds=0.004, measured_steps=512),
        loader=LoaderTimes(batches=512, sampler_seconds=0.0004, fetch_seconds=0.19, getitem_seconds=0.003, collate_seconds=0.008, wait_seconds=0.18, pin_seconds=0.002, worker_busy_ratio=0.97, samples_per_batch=batch),
        stalls=(Stall(kind="validate", count=7, total_seconds=84.0, share=0.02, every_steps=1780.0, mean_seconds=12.0, last_step=steps - 400), Stall(kind="checkpoint", count=82, total_seconds=246.0, share=0.06, every_steps=150.0, mean_seconds=3.0, last_step=steps - 120)),
        loss=0.4127, scalars={"accuracy": 0.8713, "lr": 0.0003, "cuda.allocated_bytes": 9.8 * GIB, "cuda.reserved_bytes": 11.2 * GIB, "gc.seconds": 0.41, "dynamo.recompiles": 1.0},
        overhead_ratio=0.0006)  # type: ignore[arg-type]  # fmt: skip


CONFIG = {
    "torch": "2.13.0", "python": "3.11.7", "cuda": "12.8", "device": "cuda:0", "cpu_count": 64,
    "loader": {"num_workers": 0, "batch_size": 64, "prefetch_factor": None, "pin_memory": False, "persistent_workers": False},
    "optimizer": {"class": "AdamW", "fused": False, "foreach": None}, "model": {"class": "ResNet", "parameters": 25_557_032, "compiled": False},
    "precision": {"autocast": False, "matmul_tf32": False}, "cudnn": {"benchmark": False},
    "hotspots": [{"phase": "fetch", "function": "Photos.__getitem__", "file": "data.py", "line": 48, "share": 0.71, "seconds": 0.0021, "kind": "cpu", "code": "image = decode(self.files[at])"}],
}  # fmt: skip


def run(
    name: str,
    shares: dict[str, float],
    step: float,
    *,
    ranks: int = 1,
    first: int = 0,
    batch: int = 64,
    steps: int = 12_431,
    trend: float = 0.97,
    state: RunState = "running",
    live: tuple[str, float] = ("forward", 0.02),
    skew: float = 0.0,
) -> Run:
    members = tuple(
        rank(
            i,
            shares,
            step * (1 + skew * (i == ranks - 1)),
            batch=batch,
            pid=4100 + first + i,
            steps=steps,
            gpu_uuid=f"GPU-{first + i:04d}",
            live=live,
            state=state,
        )
        for i in range(ranks)
    )
    line = timeline(shares, step, batch, decay=0 if trend > 0.9 else 1.5)
    return Run(
        id=f"{name}-8f3a21", name=name, state=state, started=NOW - 3120, ranks=members, world_size=ranks, first_step_time=NOW - 3080,
        command=f"python train.py --name {name} --batch {batch}", script="train.py", user="maya", hostname="lab-07", git_commit="4c1de07", sdk_version="0.1.0", way="auto",
        config=CONFIG, steps=steps * ranks, batch_size=batch, iterations_per_second=1 / step, samples_per_second=batch * ranks / step,
        step=times(step), phases=phases(shares, step), starved_ratio=round(shares["data"] * 0.95, 3), trend_ratio=trend, stalls=members[0].stalls,
        timeline=line, gpu_uuids=tuple(f"GPU-{first + i:04d}" for i in range(ranks)), pids=tuple(m.pid for m in members))  # type: ignore[arg-type]  # fmt: skip


def process(
    pid: int,
    *,
    role: Literal["trainer", "worker", "gpu", "other"] = "trainer",
    parent: int = 900,
    run_id: str | None = None,
    number: int | None = None,
    tick: int = 0,
    command: str = "python train.py",
) -> Process:
    return Process(
        pid=pid, parent=parent, role=role, name="python", command=command, user=("maya", "jonas", "root")[pid % 3], cpu_ratio=round(wave(tick, pid, 0.2, 1.6), 2),
        rss_bytes=int(wave(0, pid, 0.4, 6) * GIB), threads=12 + pid % 40, read_bytes_per_second=2.1e6, started=NOW - 3100, container="train-job" if pid % 2 else None,
        slurm_job="88123" if pid % 3 else None, run=run_id, rank=number)  # type: ignore[arg-type]  # fmt: skip


NO_WORKERS = Finding(
    "input.no_workers", "warning",
    "No loader workers: 62 % of the step waits for data made in the main process; `Photos.__getitem__` takes 3.00 ms a sample, 71 % of it in `image = decode(self.files[at])` (data.py:48)",
    headline="No loader workers: 62 % of the step waits for data made in the main process", cause="No loader workers",
    run="resnet50-naive-8f3a21", gpu="GPU-0000", since=NOW - 1260,
    evidence={"num_workers": 0, "data_share": 0.62, "data_seconds_per_step": 0.1934, "step_seconds": 0.312, "getitem_seconds": 0.003, "cores": 64, "hot_line": "data.py:48", "hot_function": "Photos.__getitem__", "hot_share_of_loader": 0.71},
    remedy=Remedy(
        "Give the DataLoader 6 workers (num_workers=6; 64 cores here), so that the next batches are made while the model computes.",
        "@@ train.py:31 @@\n- loader = DataLoader(\n-     photos, batch_size=64, shuffle=True,\n- )\n+ loader = DataLoader(\n+     photos, batch_size=64, shuffle=True,\n+     num_workers=6, persistent_workers=True,\n+ )\n",
        settings=("loader.num_workers",), effect="in_expectation", price="memory of a process for each worker"),
    speedup=Speedup(1.7, 2.1, 2.4, "loading 193 ms a batch overlaps with 119 ms of the rest on 64 cores", "gpu"),
    why="With `num_workers=0` nothing is loaded while the model computes; every sample's cost is paid in the step.",
)  # fmt: skip
AMP = Finding(
    "compute.amp_off", "warning", "Mixed precision is off: forward and backward (29 % of the step) run in float32",
    headline="Mixed precision is off: forward and backward (29 % of the step) run in float32", cause="Mixed precision off", run="resnet50-naive-8f3a21", since=NOW - 1200,
    evidence={"compute_share": 0.29, "autocast": False, "gpu": "NVIDIA H100 80GB HBM3"},
    remedy=Remedy("Run forward and loss under autocast with bfloat16 (no scaler needed); watch the loss for the first epochs.", effect="changes_training"),
    speedup=Speedup(1.05, 1.17, 1.22, "16-bit matrix work runs at 1.2–2.2 times the speed, on 29 % of the step", "gpu"),
    why="Tensor cores do 16-bit matrix work several times faster and halve the memory traffic; float32 leaves them idle.",
)  # fmt: skip
CHECKPOINT = Finding(
    "compute.checkpoint_stalls", "hint", "Checkpoints take 6 % of the time: saved every 150 steps, 3.00 s each (train.py:58)",
    headline="Checkpoints take 6 % of the time: saved every 150 steps, 3.00 s each (train.py:58)", cause="Frequent checkpoints", run="resnet50-naive-8f3a21", since=NOW - 600,
    evidence={"checkpoint_share": 0.06, "checkpoint_seconds": 3.0, "every_steps": 150, "suggested_every_steps": 480},
    remedy=Remedy("Save every 480 steps (or once an epoch, or only when the model got better) instead of every 150 steps; or copy the state and save it from a thread.", effect="identical", price="up to 480 steps are lost when the run dies"),
    speedup=Speedup(1.04, 1.05, 1.06, "20.0 ms a step is spent saving now", "gpu"), why="A synchronous save holds up every step after it; saving too often is one of the most common causes of idle GPUs.",
)  # fmt: skip
POWER = Finding(
    "device.power_throttle", "warning", "GPU 2 is at its power limit of 350 W, clock at 67 % of its maximum", gpu="GPU-0002", since=NOW - 300, cause="Power throttling",
    evidence={"reasons": ["sw_power_cap"], "clock_ratio": 0.667, "power_watts": 349.0, "power_limit_watts": 350.0},
    remedy=Remedy("Raise the power limit towards the card's maximum (if cooling and supply allow).", "nvidia-smi -i 2 -pl <watts>"), speedup=Speedup(1.0, 1.25, 1.4, "the clock back at its maximum, on compute-bound steps", "gpu"),
    why="With a lower limit that somebody has set, speed is given away.",
)  # fmt: skip
HUNG = Finding(
    "trend.hung", "critical", "Hung in backward: no step for 4 min 12 s", run="llama-ft-8f3a21", rank=3, since=NOW - 252, cause="Hung",
    evidence={"silent_seconds": 252.0, "live_phase": "backward", "steps": 12_431, "usual_step_seconds": 0.84},
    remedy=Remedy("In backward: a collective waits for a rank that never arrived; look at the other ranks.", "py-spy dump --pid 4103"),
    why="A deadlocked worker, a collective that one rank never entered or a stuck file system does not resolve itself, and the GPU stays allocated.",
)  # fmt: skip
LOST = Finding(
    "device.lost", "critical", "GPU 5 is lost: no longer on the bus (XID 79)", gpu="GPU-0005", since=NOW - 64, evidence={"state": "lost", "age_seconds": 64.0}, cause="Device failure",
    remedy=Remedy("Look at the kernel log for XID 79 or 119; reset the GPU, or drain and reboot the machine.", "dmesg | grep -i xid; nvidia-smi -i 5 --gpu-reset"),
    why="A lost GPU takes its run with it; everything else on the machine keeps working, the monitor included.",
)  # fmt: skip
FINE = Finding(
    "healthy.ok",
    "healthy",
    "73 checks, none fired; the GPU has no work for 3 % of the time",
    run="llama-ft-8f3a21",
    since=NOW - 3000,
    remedy=Remedy("The next limit is the backward pass: compute itself (55 % of the step in backward)."),
)


ECC = Finding(
    "device.memory_errors", "warning", "Memory errors on GPU 7: remapping pending", gpu="GPU-0007", since=NOW - 900, cause="Memory errors",
    remedy=Remedy("Checkpoint, drain the GPU and reset it; replace it if the errors come back.", "nvidia-smi -i 7 -q -d ECC,ROW_REMAPPER; nvidia-smi -i 7 --gpu-reset"),
    evidence={"remapped_rows_pending": True}, why="Uncorrected errors corrupt results or kill the process; a pending remap takes effect only after a reset.",
)  # fmt: skip
