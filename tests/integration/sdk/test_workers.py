"""DataLoader workers, ranks and launchers: what is a run and what is not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import warm
from tests.conftest import PATIENCE
from tests.integration.sdk.scripts import AUTO, HEAD, environment, finish, gpumon, write
from tests.rings import trainer_rings, worker_rings

MAIN = "\nif __name__ == '__main__': main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)\n"


@pytest.mark.slow
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_record_their_batches(gpumon_dir: Path, tmp_path: Path, context: str) -> None:
    script = write(tmp_path, AUTO + MAIN)
    result = finish(script, gpumon_dir, "2", context, front=gpumon())
    assert result.returncode == 0, result.stderr
    (trainer,) = trainer_rings(gpumon_dir)
    assert trainer.header.head == 16
    assert trainer.config["loader"]["start_method"] == context
    assert trainer.config["loader"]["num_workers"] == 2
    workers = worker_rings(gpumon_dir)
    assert len(workers) == 4, "two workers, two epochs"
    assert sum(one.header.head for one in workers) == 16
    assert {one.meta["worker_id"] for one in workers} == {0, 1}
    assert {one.meta["parent_pid"] for one in workers} == {trainer.header.pid}
    batch = workers[0].records[-1]
    assert batch.samples == 8 and batch.phases["fetch"] >= 0.004
    spots = [spot for one in workers for spot in one.config.get("hotspots", [])]
    assert any(spot["function"] == "Data.__getitem__" and spot["kind"] == "sleep" for spot in spots)


@pytest.mark.slow
def test_one_line_with_spawned_workers(gpumon_dir: Path, tmp_path: Path) -> None:
    """Without `gpumon run`, a spawned worker inherits only what torch hands over."""
    text = AUTO + (
        "\nif __name__ == '__main__':\n"
        "    from sdk import TrainingMonitor\n"
        "    monitor = TrainingMonitor.auto()\n"
        "    main(1, 'spawn', persistent=True)\n"
    )
    result = finish(write(tmp_path, text), gpumon_dir)
    assert result.returncode == 0, result.stderr
    assert len(trainer_rings(gpumon_dir)) == 1
    (worker,) = worker_rings(gpumon_dir)
    assert worker.header.head == 16


@pytest.mark.slow
def test_two_ranks_under_torchrun(gpumon_dir: Path, tmp_path: Path) -> None:
    text = HEAD + (
        "import torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "model, optimizer = net()\n"
        "model = nn.parallel.DistributedDataParallel(model)\n"
        "for x, y in DataLoader(Data(48), batch_size=8):\n"
        "    step(model, optimizer, x, y)\n"
        "dist.destroy_process_group()\n"
    )
    script = write(tmp_path, text)
    command = [*gpumon("--name", "pair"), warm.python(), "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*command, "--nproc_per_node", "2", "--no-python", warm.python(), str(script)],
        env=environment(gpumon_dir), capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, second = trainer_rings(gpumon_dir)
    assert (first.meta["rank"], second.meta["rank"]) == (0, 1)
    assert first.meta["run"] == second.meta["run"] and first.meta["world"] == 2
    assert first.meta["name"] == "pair"
    assert (first.header.head, second.header.head) == (6, 6)
    assert first.config["model"]["class"] == "Linear"
    assert first.config["model"]["wrapper"] == "DistributedDataParallel"


@pytest.mark.slow
def test_spawned_trainers_are_ranks_and_other_children_are_nothing(gpumon_dir: Path, tmp_path: Path) -> None:
    text = HEAD + (
        "import torch.distributed as dist, torch.multiprocessing as mp\n"
        "def rank(number, place):\n"
        "    dist.init_process_group('gloo', init_method=f'file://{place}', rank=number, world_size=2)\n"
        "    model, optimizer = net()\n"
        "    for x, y in DataLoader(Data(32), batch_size=8): step(model, optimizer, x, y)\n"
        "    dist.destroy_process_group()\n"
        "def idle(): import torch; torch.ones(3)\n"
        "if __name__ == '__main__':\n"
        "    mp.spawn(rank, (sys.argv[1],), nprocs=2)\n"
        "    child = mp.get_context('spawn').Process(target=idle); child.start(); child.join()\n"
    )
    result = finish(write(tmp_path, text), gpumon_dir, str(tmp_path / "meet"), front=gpumon())
    assert result.returncode == 0, result.stderr
    found = trainer_rings(gpumon_dir)
    assert [(one.meta["rank"], one.meta["world"], one.header.head) for one in found] == [(0, 2, 4), (1, 2, 4)]
