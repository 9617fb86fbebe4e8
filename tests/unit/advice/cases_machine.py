"""Memory, device, distributed, job and trend rules: with the cause, and without."""

from __future__ import annotations

from monitor.model.gpu import Errors, GpuProcess
from monitor.model.host import Memory
from monitor.model.nodes import Node
from monitor.model.run import Window
from monitor.model.snapshot import Snapshot
from tests.unit.advice.build import (
    GIB,
    NOW,
    cuda_run,
    gpu_of,
    run_of,
    snapshot_of,
)
from tests.unit.advice.shapes import (
    CUDA,
    EVEN_RANKS,
    HEALTHY,
    ONE_GPU,
    TWO_RANKS,
    UNEVEN,
    host,
    looped,
    stalled,
    timeline,
)

EVEN_NODES = tuple(
    Node(name, "running", (at,), own_seconds=0.009, least_own_seconds=0.009, phase="data", extra_seconds=0.0)
    for at, name in enumerate("ab")
)
SLOW_NODE = (
    EVEN_NODES[0],
    Node("b", "running", (1,), own_seconds=0.016, least_own_seconds=0.016, phase="data", extra_seconds=0.007),
)

CASES: dict[str, tuple[Snapshot, Snapshot]] = {
    "memory.device_full": (
        snapshot_of(CUDA, gpus=(gpu_of(memory_used_bytes=78 * GIB),)),
        snapshot_of(CUDA, gpus=(gpu_of(memory_used_bytes=8 * GIB),)),
    ),
    "memory.allocator_retries": (
        snapshot_of(cuda_run(rank={"scalars": {"cuda.alloc_retries": 5.0}}), **ONE_GPU),
        snapshot_of(CUDA, **ONE_GPU),
    ),
    "memory.leak": (
        snapshot_of(
            run_of(
                timeline=tuple(
                    Window(NOW + at, 1.0, at * 40, 40, rss_bytes=GIB + at * (40 << 20)) for at in range(10)
                )
            )
        ),
        snapshot_of(
            run_of(timeline=tuple(Window(NOW + at, 1.0, at * 40, 40, rss_bytes=GIB) for at in range(10)))
        ),
    ),
    "memory.swapping": (
        snapshot_of(HEALTHY, host=host(memory=Memory(24 * GIB, GIB, 23 * GIB, swap_in_bytes_per_second=9e7))),
        snapshot_of(HEALTHY, host=host(memory=Memory(24 * GIB, GIB, 23 * GIB, swap_in_bytes_per_second=0.0))),
    ),
    "memory.batch_suggestion": (
        snapshot_of(
            cuda_run(rank={"scalars": {"cuda.max_allocated_bytes": 2e9}}),
            gpus=(gpu_of(memory_used_bytes=4 * GIB),),
        ),
        snapshot_of(CUDA, **ONE_GPU),
    ),
    "device.thermal_throttle": (
        snapshot_of(gpus=(gpu_of(throttle={"sw_thermal_slowdown": True}, sm_clock_hertz=1e9),)),
        snapshot_of(**ONE_GPU),
    ),
    "device.power_throttle": (
        snapshot_of(gpus=(gpu_of(throttle={"sw_power_cap": True}, sm_clock_hertz=1e9),)),
        snapshot_of(gpus=(gpu_of(throttle={"sw_power_cap": True}),)),
    ),
    "device.hardware_slowdown": (
        snapshot_of(gpus=(gpu_of(throttle={"hw_power_brake_slowdown": True}),)),
        snapshot_of(**ONE_GPU),
    ),
    "device.clocks_low": (snapshot_of(gpus=(gpu_of(sm_clock_hertz=1e9),)), snapshot_of(**ONE_GPU)),
    "device.memory_errors": (
        snapshot_of(gpus=(gpu_of(errors=Errors(ecc_uncorrected_volatile=2)),)),
        snapshot_of(**ONE_GPU),
    ),
    "device.xid": (
        snapshot_of(gpus=(gpu_of(errors=Errors(xid_counts={"79": 1}, xid_last=79)),)),
        snapshot_of(**ONE_GPU),
    ),
    "device.lost": (snapshot_of(gpus=(gpu_of(state="lost"),)), snapshot_of(**ONE_GPU)),
    "device.shared": (
        snapshot_of(CUDA, gpus=(gpu_of(processes=(GpuProcess(10), GpuProcess(99, memory_bytes=4 * GIB))),)),
        snapshot_of(CUDA, gpus=(gpu_of(processes=(GpuProcess(10),)),)),
    ),
    "distributed.straggler": (
        snapshot_of(run_of(ranks=TWO_RANKS, world_size=2)),
        snapshot_of(run_of(ranks=EVEN_RANKS, world_size=2)),
    ),
    "distributed.slow_node": (
        snapshot_of(run_of(ranks=TWO_RANKS, world_size=2, nodes=SLOW_NODE)),
        snapshot_of(run_of(ranks=EVEN_RANKS, world_size=2, nodes=EVEN_NODES)),
    ),
    "distributed.lost_nodes": (
        snapshot_of(
            run_of(
                world_size=2, nodes=(Node("a", "running", (0,)), Node("b", "lost", (1,))), missing_ranks=(1,)
            )
        ),
        snapshot_of(run_of(ranks=EVEN_RANKS, world_size=2, nodes=EVEN_NODES)),
    ),
    "distributed.imbalance": (
        snapshot_of(run_of(ranks=UNEVEN, world_size=2)),
        snapshot_of(run_of(ranks=EVEN_RANKS, world_size=2)),
    ),
    "distributed.collective_wait": (
        snapshot_of(run_of({"forward": 0.002, "backward": 0.02}, world_size=2)),
        snapshot_of(run_of({"forward": 0.002, "backward": 0.02})),
    ),
    "job.gpu_idle": (
        snapshot_of(gpus=(gpu_of(processes=(GpuProcess(99, memory_bytes=GIB),)),)),
        snapshot_of(CUDA, **ONE_GPU),
    ),
    "job.partial_gpus": (
        snapshot_of(
            cuda_run(visible_gpu_uuids=("GPU-a", "GPU-b"), config={"visible_devices": "0,1"}),
            gpus=(gpu_of(), gpu_of(index=1, uuid="GPU-b")),
        ),
        snapshot_of(CUDA, **ONE_GPU),
    ),
    "job.long_setup": (
        snapshot_of(run_of(started=NOW - 900, first_step_time=NOW - 300)),
        snapshot_of(HEALTHY),
    ),
    "job.gc_pauses": (snapshot_of(looped("tidy()", job="gc", api="gc.collect")), snapshot_of(HEALTHY)),
    "job.data_lost": (
        snapshot_of(run_of(rank={"lost": 300})),
        snapshot_of(run_of(rank={"lost": 3})),
    ),
    "trend.decay": (
        snapshot_of(run_of(timeline=timeline(2.0))),
        snapshot_of(run_of(timeline=timeline(0.0))),
    ),
    "trend.periodic_stalls": (snapshot_of(run_of(**stalled("forward"))), snapshot_of(HEALTHY)),
    "trend.hung": (
        snapshot_of(run_of(rank={"last_step_time": NOW - 90, "live_phase": "data", "live_seconds": 90.0})),
        snapshot_of(HEALTHY),
    ),
    "trend.ended_abnormally": (snapshot_of(run_of(state="killed")), snapshot_of(run_of(state="ended"))),
}
