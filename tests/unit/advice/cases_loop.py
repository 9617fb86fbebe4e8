"""Input, transfer and compute rules: a snapshot that has the cause, and one that does not."""

from __future__ import annotations

from monitor.model.gpu import Pcie
from monitor.model.host import Cgroup, Cpu, Disk, Pressure
from monitor.model.snapshot import Snapshot
from tests.unit.advice.build import (
    GIB,
    cuda_run,
    gpu_of,
    hot,
    loader,
    loader_config,
    rank_of,
    run_of,
    snapshot_of,
    trainer_process,
)
from tests.unit.advice.shapes import (
    BUSY,
    HEALTHY,
    LAUNCH_BOUND,
    LOADED,
    ONE_GPU,
    STARVED,
    TRANSFER,
    extra,
    host,
    looped,
    stalled,
    starved,
)

KEPT = "loss.backward(retain_graph=True)"

PASSES = {"forward": 0.004, "backward": 0.005, "optimizer": 0.001}

CASES: dict[str, tuple[Snapshot, Snapshot]] = {
    "healthy.ok": (snapshot_of(HEALTHY), snapshot_of(starved(0))),
    "input.no_workers": (snapshot_of(starved(0)), snapshot_of(run_of(config=loader_config(0)))),
    "input.slow_getitem": (
        snapshot_of(starved(2)),
        snapshot_of(starved(0, [hot("data", "x = x + noise(9)", function="Rows.__getitem__", random=True)])),
    ),
    "input.rows_one_by_one": (
        snapshot_of(starved(0, [], dataset_resident=True, whole_batch_seconds=0.002)),
        snapshot_of(starved(0, [], dataset_resident=True, whole_batch_seconds=0.018)),
    ),
    "input.too_few_workers": (
        snapshot_of(starved(1, [hot("fetch", "time.sleep(0.01)", kind="sleep")])),
        snapshot_of(starved(0)),
    ),
    "input.prefetch_low": (
        snapshot_of(
            run_of(
                {"forward": 0.01, "backward": 0.01, "data": 0.005},
                config=loader_config(2, prefetch_factor=2),
                rank={
                    "loader": loader(**LOADED),
                    "phases": (
                        *rank_of({"forward": 0.01, "backward": 0.01}).phases,
                        rank_of({"data": 0.005}).phases[0].__class__("data", 0.2, 0.005, 0.0001, 0.03),
                    ),
                },
            )
        ),
        snapshot_of(starved(2, prefetch_factor=8)),
    ),
    "input.workers_restarted": (
        snapshot_of(starved(2, epochs_started=60, workers_started=120, persistent_workers=False)),
        snapshot_of(starved(2, epochs_started=60, workers_started=2, persistent_workers=True)),
    ),
    "input.too_many_workers": (
        snapshot_of(starved(12, [], {"fetch_seconds": 0.0008, "collate_seconds": 0.0001})),
        snapshot_of(starved(2, [], {"fetch_seconds": 0.05, "collate_seconds": 0.0001})),
    ),
    "input.slow_sampler": (
        snapshot_of(starved(0, [], LOADED | {"sampler_seconds": 0.019, "fetch_seconds": 0.001})),
        snapshot_of(starved(0)),
    ),
    "input.slow_collate": (
        snapshot_of(starved(0, [], LOADED | {"collate_seconds": 0.018, "fetch_seconds": 0.001})),
        snapshot_of(starved(0)),
    ),
    "input.bound": (snapshot_of(run_of(STARVED)), snapshot_of(HEALTHY)),
    "input.disk_bound": (
        snapshot_of(
            starved(2, []),
            host=host(io_pressure=Pressure(0.8), disks=(Disk("sda", busy_ratio=0.97),)),
            processes=(trainer_process(read_bytes_per_second=5e7),),
        ),
        snapshot_of(
            starved(2, []),
            host=host(io_pressure=Pressure(0.8), disks=(Disk("sda", busy_ratio=0.97),)),
            processes=(trainer_process(read_bytes_per_second=0.0),),
        ),
    ),
    "input.cpu_saturated": (
        snapshot_of(starved(2, []), host=host(cpu=Cpu(2, 0.99)), processes=(trainer_process(cpu_ratio=1.9),)),
        snapshot_of(starved(2, []), host=host(cpu=Cpu(2, 0.6)), processes=(trainer_process(cpu_ratio=1.0),)),
    ),
    "input.cpu_quota": (
        snapshot_of(HEALTHY, host=host(cgroup=Cgroup(cpu_quota_cores=1.0, cpu_throttled_ratio=0.5))),
        snapshot_of(HEALTHY, host=host(cgroup=Cgroup(cpu_quota_cores=1.0, cpu_throttled_ratio=0.01))),
    ),
    "transfer.blocking_copies": (
        snapshot_of(cuda_run(TRANSFER, rank={"scalars": {"transfer.blocking_per_step": 2.0}}), **ONE_GPU),
        snapshot_of(cuda_run(TRANSFER, rank={"scalars": {"transfer.blocking_per_step": 0.0}}), **ONE_GPU),
    ),
    "transfer.unpinned_memory": (
        snapshot_of(cuda_run(TRANSFER, config=loader_config(2, pin_memory=False)), **ONE_GPU),
        snapshot_of(run_of(TRANSFER, config=loader_config(2, pin_memory=False))),
    ),
    "transfer.small_copies": (
        snapshot_of(
            cuda_run(
                TRANSFER, rank={"scalars": {"transfer.copies_per_step": 64.0, "transfer.bytes_per_step": 6e5}}
            ),
            **ONE_GPU,
        ),
        snapshot_of(
            cuda_run(
                TRANSFER, rank={"scalars": {"transfer.copies_per_step": 2.0, "transfer.bytes_per_step": 6e7}}
            ),
            **ONE_GPU,
        ),
    ),
    "transfer.pcie_degraded": (
        snapshot_of(gpus=(gpu_of(pcie=Pcie(4, 4, 4, 16)),)),
        snapshot_of(gpus=(gpu_of(pcie=Pcie(4, 4, 16, 16)),)),
    ),
    "compute.small_batch": (
        snapshot_of(run_of({"forward": 0.0002, "backward": 0.0003, "optimizer": 0.0005}, batch_size=2)),
        snapshot_of(run_of({"forward": 0.0002, "backward": 0.0003, "optimizer": 0.0005}, batch_size=64)),
    ),
    "compute.launch_bound": (
        snapshot_of(cuda_run(PASSES, rank={"device_times": LAUNCH_BOUND}), **ONE_GPU),
        snapshot_of(cuda_run(PASSES, rank={"device_times": BUSY}), **ONE_GPU),
    ),
    "compute.batch_room": (
        snapshot_of(
            cuda_run(rank={"scalars": {"cuda.max_allocated_bytes": 2e9, "cuda.reserved_bytes": 3e9}}),
            gpus=(gpu_of(utilization_ratio=0.3, memory_used_bytes=4 * GIB),),
        ),
        snapshot_of(cuda_run(), **ONE_GPU),
    ),
    "compute.amp_off": (
        snapshot_of(cuda_run(config={"precision": {"autocast": False}}), **ONE_GPU),
        snapshot_of(run_of(config={"precision": {"autocast": False}})),
    ),
    "compute.tf32_off": (
        snapshot_of(cuda_run(config={"precision": {"autocast": False, "matmul_tf32": False}}), **ONE_GPU),
        snapshot_of(run_of(config={"precision": {"autocast": False, "matmul_tf32": False}})),
    ),
    "compute.compile_off": (
        snapshot_of(cuda_run(config={"compile": {"used": False}}, steps=900), **ONE_GPU),
        snapshot_of(run_of(config={"compile": {"used": False}}, steps=900)),
    ),
    "compute.compile_failed": (
        snapshot_of(run_of(config={"compile": {"used": True, "graphs": 0}})),
        snapshot_of(run_of(config={"compile": {"used": True, "graphs": 3, "failed": False}})),
    ),
    "compute.recompiles": (
        snapshot_of(run_of(config={"compile": {"used": True, "recompiles": 30}})),
        snapshot_of(run_of(config={"compile": {"used": True, "recompiles": 1}})),
    ),
    "compute.graph_breaks": (
        snapshot_of(run_of(config={"compile": {"used": True, "graph_breaks": 9, "graphs": 10}})),
        snapshot_of(run_of(config={"compile": {"used": True, "graph_breaks": 0, "graphs": 1}})),
    ),
    "compute.cudnn_benchmark_off": (
        snapshot_of(cuda_run(config={"cudnn": {"benchmark": False}, "shapes": {"fixed": True}}), **ONE_GPU),
        snapshot_of(run_of(config={"cudnn": {"benchmark": False}, "shapes": {"fixed": True}})),
    ),
    "compute.optimizer_unfused": (
        snapshot_of(
            run_of(
                {"forward": 0.002, "backward": 0.003, "optimizer": 0.01},
                config={"optimizer": {"class": "Adam", "kind": "Adam", "fused": None}},
            )
        ),
        snapshot_of(run_of({"forward": 0.002, "backward": 0.003, "optimizer": 0.01})),
    ),
    "compute.sync_every_step": (snapshot_of(extra("sync")), snapshot_of(extra("sync", 0.0001))),
    "compute.grad_norm_every_step": (
        snapshot_of(looped("seen = watch(model)", "other", work={"job": "grad_norm"})),
        snapshot_of(extra("grad_norm", 0.0004)),
    ),
    "compute.logging_too_often": (
        snapshot_of(looped("tell(step)", work={"job": "log", "api": "builtins.print"})),
        snapshot_of(extra("log", 0.0001)),
    ),
    "compute.validation_too_often": (
        snapshot_of(extra("validate", **stalled("validate"))),
        snapshot_of(extra("validate", 0.0005)),
    ),
    "compute.checkpoint_stalls": (
        snapshot_of(extra("checkpoint", **stalled("checkpoint"))),
        snapshot_of(extra("checkpoint", 0.0003)),
    ),
    "compute.activation_checkpointing": (
        snapshot_of(run_of(config={"model": {"checkpointing": True}})),
        snapshot_of(HEALTHY),
    ),
    "compute.contention": (
        snapshot_of(
            HEALTHY,
            host=host(cpu=Cpu(2, 0.99, pressure=Pressure(0.6))),
            processes=(trainer_process(cpu_ratio=0.5),),
        ),
        snapshot_of(HEALTHY, host=host(cpu=Cpu(2, 0.55)), processes=(trainer_process(cpu_ratio=1.0),)),
    ),
    "compute.anomaly_mode": (snapshot_of(run_of(config={"anomaly": True})), snapshot_of(HEALTHY)),
    "compute.deterministic": (
        snapshot_of(cuda_run(config={"deterministic_algorithms": True}), **ONE_GPU),
        snapshot_of(run_of(config={"deterministic_algorithms": True})),
    ),
    "compute.double_precision": (
        snapshot_of(run_of(config={"model": {"dtype": "float64"}})),
        snapshot_of(HEALTHY),
    ),
    "compute.padding": (
        snapshot_of(
            run_of(config={"shapes": {"fixed": True, "spare": 0.6}, "model": {"layers": ["Embedding"]}})
        ),
        snapshot_of(
            run_of(config={"shapes": {"fixed": True, "spare": 0.6}, "model": {"layers": ["Linear"]}})
        ),
    ),
    "compute.cpu_float16": (
        snapshot_of(run_of(config={"precision": {"autocast": True, "autocast_dtype": "float16"}})),
        snapshot_of(run_of(config={"precision": {"autocast": True, "autocast_dtype": "bfloat16"}})),
    ),
    "compute.threads_oversubscribed": (
        snapshot_of(run_of(config={"threads": {"torch": 16}})),
        snapshot_of(HEALTHY),
    ),
    "compute.repeated_backward": (
        snapshot_of(run_of(config={"hotspots": [hot("backward", KEPT, 1.0, calls=4, repeats=1)]})),
        snapshot_of(run_of(config={"hotspots": [hot("backward", KEPT, 1.0, calls=1, repeats=1)]})),
    ),
    "compute.unused_gradients": (
        snapshot_of(run_of(config={"unapplied": {"tensors": 0.75, "parameters": 0.9, "first": True}})),
        snapshot_of(run_of(config={"unapplied": {"tensors": 0.1, "parameters": 0.9, "first": True}})),
    ),
    "compute.threads_few": (
        snapshot_of(run_of({"forward": 0.02, "backward": 0.03}, config={"threads": {"torch": 1}})),
        snapshot_of(HEALTHY),
    ),
    "compute.python_loop": (
        snapshot_of(looped("h, c = self.cell(x[:, t], (h, c))", "forward", 0.012, calls=160, kind="module")),
        snapshot_of(looped("x = layer(x)", "forward", 0.012, calls=9, kind="module")),
    ),
    "compute.state_copies": (
        snapshot_of(looped("best = twin(model)", work={"job": "copy", "api": "copy.deepcopy"})),
        snapshot_of(looped("twin = teacher(model)", work={"job": "", "needed": "yes", "module": True})),
    ),
    "compute.metrics_every_step": (
        snapshot_of(looped("f1 = quality(truth, guess)", work={"job": "metrics"})),
        snapshot_of(
            looped("scores = quality(truth, guess)", work={"job": "", "needed": "yes", "grad": True})
        ),
    ),
    "compute.sleep": (
        snapshot_of(looped("pause(0.01)", job="sleep", api="time.sleep")),
        snapshot_of(looped("sleep = x.sleep()", work={"job": "", "needed": "yes", "grad": True})),
    ),
    "compute.constant_recomputed": (
        snapshot_of(looped("return D @ A @ D", "forward", kind="module", constant="normalise")),
        snapshot_of(looped("return D @ A @ D", "forward", kind="module")),
    ),
    "compute.user_code": (
        snapshot_of(looped("graph = rebuild(points)", work={"job": "", "needed": "yes"})),
        snapshot_of(looped("graph = rebuild(points)", work={"job": "", "needed": "yes", "grad": True})),
    ),
}
