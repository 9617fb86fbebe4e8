"""Ranks into runs, runs with GPUs and processes, workers into loader figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from monitor.model.gpu import Gpu, GpuProcess
from monitor.model.host import Process
from monitor.runs.gpus import gpu_of, visible_gpus
from monitor.runs.grouping import run_state
from monitor.runs.meta import parse_meta
from monitor.runs.reader import RunReader
from sdk import ring
from tests.unit.runs.rings import Script

GPUS = tuple(Gpu(index=at, uuid=f"GPU-{at}{at}{at}{at}-abcd", utilization_ratio=0.5) for at in range(4))


def meta(**values: Any) -> Any:
    return parse_meta({"run": "r", **values})


@pytest.mark.parametrize(
    ("values", "config", "pid", "expected"),
    [
        ({"device": "cuda:0", "device_uuid": "GPU-2222-abcd"}, {}, 1, 2),
        ({"device": "cuda:0", "device_uuid": "2222-ABCD"}, {}, 1, 2),
        ({"device": "cuda:0"}, {"device_uuid": "3333-abcd"}, 1, 3),
        ({"device": "cuda:1"}, {"visible_devices": "3,2"}, 1, 2),
        ({"device": "cuda"}, {"env": {"CUDA_VISIBLE_DEVICES": "GPU-1111"}}, 1, 1),
        ({"device": "cuda:1"}, {"visible_devices": "3"}, 1, None),
        ({"device": "cuda:0"}, {"visible_devices": "0"}, 77, 3),
        ({"device": "cpu"}, {"visible_devices": "0"}, 77, None),
        ({}, {}, 77, 3),
        ({}, {}, 1, None),
        ({"device": "cuda:0"}, {"visible_devices": "-1,0"}, 1, None),
    ],
)
def test_gpu_of_a_rank(
    values: dict[str, str], config: dict[str, Any], pid: int, expected: int | None
) -> None:
    gpus = (*GPUS[:3], Gpu(index=3, uuid=GPUS[3].uuid, processes=(GpuProcess(77),)))
    found = gpu_of(meta(**values), config, pid, gpus)
    assert (found.index if found else None) == expected


def test_visible_gpus() -> None:
    assert visible_gpus({"visible_devices": "1,0"}, None, GPUS) == (GPUS[1].uuid, GPUS[0].uuid)
    assert len(visible_gpus({}, "cuda:0", GPUS)) == 4
    assert visible_gpus({}, "cpu", GPUS) == () and visible_gpus({"visible_devices": ""}, "cuda:0", GPUS) == ()


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        (["running", "running"], "running"),
        (["running", "stalled"], "stalled"),
        (["ended", "running"], "running"),
        (["ended", "killed"], "killed"),
        (["failed", "ended"], "failed"),
        (["failed", "killed"], "killed"),
        (["ended", "ended"], "ended"),
    ],
)
def test_state_of_a_run(ranks: list[Any], expected: str) -> None:
    assert run_state(ranks) == expected


def test_64_ranks_are_one_run(tmp_path: Path) -> None:
    scripts = [Script(tmp_path, "big", rank, world=64, batch_size=8) for rank in range(64)]
    for script in scripts:
        script.steps([10.0] * 50, samples=8)
    reader = RunReader([tmp_path])
    now = scripts[0].now()
    reader.poll(now)
    (run,) = reader.runs(now, (), ())
    assert [rank.rank for rank in run.ranks] == list(range(64)) and run.world_size == 64
    assert run.steps == 50 and run.samples_per_second == pytest.approx(64 * 800.0)
    reader.close()


def test_processes_and_readings_of_a_run(tmp_path: Path) -> None:
    script = Script(tmp_path, device="cuda:0", device_uuid=GPUS[0].uuid)
    script.steps([100.0] * 30)
    reader = RunReader([tmp_path])
    now = script.now()
    reader.poll(now)
    (pid,) = reader.pids()
    assert reader.pids()[pid] == ("run-1", 0)
    processes = (
        Process(pid=pid, role="trainer", rss_bytes=10**9, container="box", run="run-1", rank=0),
        Process(pid=999_999, parent=pid, role="worker", run="run-1", rank=0),
        Process(pid=999_998, role="gpu"),
    )
    reader.runs(now, GPUS, processes)
    (run,) = reader.runs(now, GPUS, processes)
    assert run.pids == (pid, 999_999) and run.gpu_uuids == (GPUS[0].uuid,) and run.container == "box"
    assert run.timeline[-1].gpu_utilization_ratio == 0.5 and run.timeline[-1].rss_bytes == 10**9


def test_workers_become_loader_figures(tmp_path: Path) -> None:
    spot = {
        "phase": "fetch",
        "function": "__getitem__",
        "file": "d.py",
        "line": 7,
        "share": 0.5,
        "seconds": 1.0,
    }
    script = Script(
        tmp_path, scalars=["loader.wait_s"], config={"hotspots": [{"phase": "forward", "share": 0.1}]}
    )
    script.writer.scalars[0] = 0.004
    script.steps([10.0] * 20)
    for worker in range(2):
        ring_file = Script(
            tmp_path, file=f"run-1.0.w{worker}.{worker + 10}.ring", kind=ring.KIND_WORKER, worker_id=worker,
            config={"hotspots": [spot]},
        )  # fmt: skip
        for _ in range(40):
            ring_file.step(20.0, {0: 5.0, 1: 10.0, 2: 4.0, 3: 1.0}, samples=5)
    reader = RunReader([tmp_path])
    reader.poll(script.now())
    (run,) = reader.runs(script.now(), (), ())
    loader = run.ranks[0].loader
    assert loader.batches == 80 and loader.worker_busy_ratio == pytest.approx(0.75)
    assert loader.fetch_seconds == pytest.approx(0.010) and loader.getitem_seconds == pytest.approx(0.002)
    assert loader.collate_seconds == pytest.approx(0.004) and loader.wait_seconds == 0.004
    assert loader.samples_per_batch == 5
    top, other = run.config["hotspots"]
    assert (top["line"], top["share"], top["seconds"], top["worker"]) == (7, 0.5, 2.0, True)
    assert other["phase"] == "forward" and len(reader.pids()) == 1


def test_another_users_ring_does_not_join_a_run(tmp_path: Path) -> None:
    import os

    if os.getuid() != 0:
        pytest.skip("only root can make files of two owners")
    Script(tmp_path, "shared", 0)
    foreign = Script(tmp_path, "shared", 1)
    os.chown(foreign.path, 12345, -1)
    reader = RunReader([tmp_path])
    reader.poll(foreign.now())
    assert [len(run.ranks) for run in reader.runs(foreign.now(), (), ())] == [1, 1]


def test_a_restarted_rank_replaces_its_older_ring(tmp_path: Path) -> None:
    Script(tmp_path, "elastic", 0, file="a.ring").steps([1.0] * 3)
    newer = Script(tmp_path, "elastic", 0, file="b.ring")
    newer.writer.words[ring.H_STARTED_WALL] += 10**9
    newer.steps([1.0] * 7)
    reader = RunReader([tmp_path])
    reader.poll(newer.now())
    (run,) = reader.runs(newer.now(), (), ())
    assert len(run.ranks) == 1 and run.steps == 7
