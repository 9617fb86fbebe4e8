"""One made-up machine for tests of faces: two GPUs (one of them lost), a run of two ranks, findings."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from monitor.model import facts
from monitor.model.finding import Finding, Remedy, Speedup
from monitor.model.gpu import (
    Activity,
    Errors,
    Gpu,
    GpuProcess,
    Holder,
    MigInstance,
    Nvlink,
    NvlinkLink,
    Pcie,
    Range,
    Source,
)
from monitor.model.host import Cgroup, Cpu, Disk, Host, Memory, Network, Pressure, Process
from monitor.model.owner import RingCount
from monitor.model.run import STEP_BUCKETS, Device, Exemplar, Phase, Rank, Run, Stall, Times
from monitor.model.snapshot import Collector, Snapshot

NOW = 1_800_000_000.0
RUN = "resnet-1"


def gpu(index: int = 0) -> Gpu:
    """A GPU that answers everything."""
    return Gpu(
        index=index,
        uuid=f"GPU-{index}",
        name="Test H100",
        pci_bus_id="0000:10:00.0",
        minor=index,
        architecture="hopper",
        compute_capability="9.0",
        utilization_ratio=0.42,
        memory_utilization_ratio=0.2,
        encoder_utilization_ratio=0.0,
        decoder_utilization_ratio=0.0,
        memory_used_bytes=40 << 30,
        memory_total_bytes=80 << 30,
        memory_reserved_bytes=1 << 20,
        memory_free_bytes=39 << 30,
        power_watts=310.5,
        power_limit_watts=700.0,
        energy_joules=123456.7,
        temperature_celsius=61.0,
        temperature_slowdown_celsius=87.0,
        temperature_shutdown_celsius=92.0,
        memory_temperature_celsius=70.0,
        memory_temperature_limit_celsius=95.0,
        sm_clock_hertz=1.7e9,
        sm_clock_max_hertz=1.98e9,
        memory_clock_hertz=2.6e9,
        memory_clock_max_hertz=2.6e9,
        graphics_clock_hertz=1.7e9,
        video_clock_hertz=1.5e9,
        throttle_seconds={"sw_power_cap": 12.5},
        compute_mode="default",
        recovery_action="none",
        fabric_state="completed",
        fabric_health="healthy",
        virtualization="none",
        vgpus=0,
        vgpu_licensed=True,
        pstate=0,
        fan_ratio=0.3,
        throttle={"gpu_idle": False, "sw_power_cap": True},
        pcie=Pcie(4, 5, 8, 16, 1e9, 2e9, 3),
        nvlink=Nvlink(
            18,
            1e10,
            2e10,
            4.5e11,
            transmit_bytes=1 << 40,
            receive_bytes=1 << 41,
            errors={"replay": 3},
            links=(NvlinkLink(0, True, 1 << 30, 1 << 31, {"replay": 2}),),
        ),
        errors=Errors(1, 0, 5, 0, 1, 0, False, False, 2, 0, True, {"79": 1}, 79, NOW - 60),
        activity=Activity(0.5, 0.4, 0.3, 0.2, 0.6, 0.01, 0.15, 0.07),
        mig_enabled=True,
        mig=(MigInstance("MIG-1", "1g.10gb", 1, 0, 1 << 30, 10 << 30),),
        processes=(GpuProcess(101, memory_bytes=8 << 30, sm_ratio=0.4),),
        holders=(Holder(pod="resnet-0", namespace="team-a", container="main"), Holder(slurm_job="4711")),
        ranges={"power_watts": Range(200.0, 300.0, 400.0, 10)},
    )


def lost_gpu(index: int = 1) -> Gpu:
    """Its readings are the last known ones and must not be shown as current."""
    return Gpu(
        index=index,
        uuid=f"GPU-{index}",
        name="Test H100",
        state="lost",
        state_detail="GPU is lost",
        age_seconds=12.0,
        utilization_ratio=0.99,
        power_watts=1.0,
    )


def rank(number: int = 0) -> Rank:
    histogram = [0] * (len(STEP_BUCKETS) + 1)
    histogram[4], histogram[5], histogram[-1] = 900, 99, 1
    exemplars: list[Exemplar | None] = [None] * len(histogram)
    exemplars[4] = Exemplar(1000, 0.02, NOW - 1)
    exemplars[-1] = Exemplar(7, 75.0, NOW - 500)
    return Rank(
        rank=number,
        state="running",
        pid=101 + number,
        local_rank=number,
        hostname="node",
        gpu_uuid="GPU-0",
        device="cuda:0",
        steps=1000,
        lost=2,
        samples=32000,
        tokens=0,
        epoch=3,
        live_phase="forward",
        live_seconds=0.004,
        last_step_time=NOW - 1,
        step=Times(900, 0.025, 0.024, 0.03, 0.04, 0.02, 0.05, 0.003),
        phases=(
            Phase("data", 0.6, 0.015, total_seconds=60.0),
            Phase("forward", 0.3, 0.0075, total_seconds=30.0),
            Phase("other", 0.1, 0.0025, total_seconds=10.0),
        ),
        iterations_per_second=40.0,
        samples_per_second=1280.0,
        device_times=Device(
            busy_ratio=0.4,
            starved_ratio=0.6,
            bound="data",
            lag_seconds=0.002,
            time={"forward": 0.008, "backward": 0.015},
            exchange_seconds=0.003,
            measured_steps=100,
            skipped_steps=1,
            busy_seconds=40.0,
            starved_seconds=60.0,
        ),
        stalls=(Stall("validate", 3, 9.0, 0.09, 300.0, 3.0, 900),),
        loss=0.5,
        scalars={"accuracy": 0.9, "cuda.allocated_bytes": 5e9, "cuda.reserved_bytes": 6e9},
        overhead_ratio=0.001,
        dropped=1,
        histogram=tuple(histogram),
        exemplars=tuple(exemplars),
    )


def run(identity: str = RUN, ranks: int = 2) -> Run:
    return Run(
        id=identity,
        name='res"net\\50\nlarge',
        state="running",
        started=NOW - 100,
        ranks=tuple(rank(number) for number in range(ranks)),
        world_size=ranks,
        first_step_time=NOW - 90,
        user="ada",
        hostname="node",
        slurm_job="4711",
        way="api",
        steps=1000,
        batch_size=32,
        iterations_per_second=40.0,
        samples_per_second=2560.0,
        step=Times(900, 0.025, 0.024, 0.03, 0.04, 0.02, 0.05, 0.003),
        phases=(Phase("data", 0.6, 0.015), Phase("forward", 0.4, 0.01)),
        starved_ratio=0.6,
        trend_ratio=0.95,
        gpu_uuids=("GPU-0",),
        pids=(101, 102),
    )


def host() -> Host:
    pressure = Pressure(0.1, 0.05, 12.5, 3.5)
    return Host(
        hostname="node",
        kernel="6.1",
        boot_time=NOW - 86400,
        cpu=Cpu(2, 0.5, (0.25, 0.75), 0.4, 0.1, 0.02, 0.0, 1.5, 1.2, 1.0, 3e9, pressure),
        memory=Memory(32 << 30, 16 << 30, 14 << 30, 8 << 30, 1 << 30, 0, 0, 0.0, 0.0, pressure),
        disks=(Disk("nvme0n1", 1e8, 2e7, 0.3, False),),
        networks=(Network("eth0", 1e6, 2e6),),
        io_pressure=pressure,
        cgroup=Cgroup(4.0, 0.1, 64 << 30, 10 << 30),
        shm_free_bytes=1 << 30,
    )


def finding() -> Finding:
    return Finding(
        id="input.no_workers",
        severity="warning",
        title="Data is loaded by the training process itself",
        run=RUN,
        remedy=Remedy("Set num_workers=4", "- num_workers=0\n+ num_workers=4"),
        speedup=Speedup(1.4, 1.8, 2.2, "the loader's share"),
        since=NOW - 30,
    )


def changed(**parts: Any) -> Snapshot:
    """The scene with some parts replaced, and the facts that follow from them."""
    return facts.complete(replace(snapshot(), **parts))


def snapshot(seq: int = 7) -> Snapshot:
    processes = (
        Process(
            101,
            role="trainer",
            name="python",
            user="ada",
            slurm_job="4711",
            cpu_ratio=1.0,
            rss_bytes=2 << 30,
            threads=8,
            read_bytes_per_second=1e6,
            write_bytes_per_second=2e3,
            run=RUN,
            rank=0,
        ),
        Process(201, 101, "worker", cpu_ratio=0.5, rss_bytes=1 << 30, threads=2, run=RUN, rank=0),
        Process(202, 101, "worker", cpu_ratio=0.25, rss_bytes=1 << 30, threads=2, run=RUN, rank=0),
    )
    return facts.complete(
        Snapshot(
            seq=seq,
            time=NOW,
            monotonic=5000.0,
            interval_seconds=1.0,
            source=Source("nvml", True, None, "550.54", "12.4", "12.550.54"),
            host=host(),
            gpus=(gpu(0), lost_gpu(1)),
            processes=processes,
            runs=(run(),),
            findings=(finding(),),
            collectors=(
                Collector("gpu", True, 0.004, NOW, 0),
                Collector("host", False, 0.001, NOW - 5, 3, "OSError: no"),
            ),
            dropped={"processes": 2, "rings": 0},
            ring_trouble=(RingCount(1000, "ada", "size", 3), RingCount(1001, "bob", "run", 1)),
            rule_errors={"input.bound": 1},
            version="0.1.0",
        )
    )
