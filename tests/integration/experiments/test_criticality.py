"""Slopes of real loops whose truth is known: what paces them sleeps, and nothing else takes time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from monitor.cli.probe import Probe
from monitor.experiments.criticality import Criticality, criticality
from monitor.experiments.measure import periods
from tests.conftest import PATIENCE

ROOT = Path(__file__).parents[3]
pytest.importorskip("torch")
pytestmark = pytest.mark.slow
STEPS, LONG_STEPS = 2500, 1000
SOON = 0.1
"""More delays than a real run gets, for an answer after fewer steps."""

BEGIN = """
import os, queue, sys, threading, time
import torch
from torch.utils.data import DataLoader, Dataset

STEPS = int(sys.argv[1])
torch.set_num_threads(1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

class Samples(Dataset):
    def __init__(self, seconds):
        self.seconds = seconds
    def __len__(self):
        return STEPS
    def __getitem__(self, index):
        time.sleep(self.seconds)
        return torch.ones(4)

def step(x):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
"""
DEVICE = """
work = queue.Queue(2)
def device():
    while True:
        time.sleep(work.get())
threading.Thread(target=device, daemon=True).start()
for x in DataLoader(Samples(0.0)):
    step(x)
    work.put(0.008)
"""
LOADER = """
if __name__ == "__main__":
    for x in DataLoader(Samples({sample}), num_workers=1):
        step(x)
        time.sleep({loop})
"""
RANKS = """
import torch.distributed as dist
import torch.multiprocessing as mp

def rank_(rank, address):
    os.environ["RANK"], os.environ["WORLD_SIZE"] = str(rank), "2"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    together = torch.nn.parallel.DistributedDataParallel(model)
    for x in DataLoader(Samples(0.0)):
        optimizer.zero_grad()
        loss = together(x).pow(2).mean()
        time.sleep({times}[rank])
        loss.backward()
        optimizer.step()

if __name__ == "__main__":
    mp.spawn(rank_, ("file://" + os.path.abspath("meeting"),), 2)
"""


def probed(folder: Path, script: str, steps: int = STEPS) -> dict[str, Criticality]:
    """The script under `gpumon run --probe`, without its report."""
    (folder / "rings").mkdir(mode=0o700)
    (folder / "train.py").write_text(BEGIN + script)
    probe = Probe(SOON)
    environment = os.environ | probe.environment() | {
        "PYTHONPATH": str(ROOT / "sdk" / "autostart"), "GPUMON_AUTO": "1", "GPUMON_RUN_ID": "probed",
        "GPUMON_DIR": str(folder / "rings"),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "train.py", str(steps)], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = criticality(probe.delays(), periods(folder / "rings", "probed"))
    return {one.place: one for one in found}


def check(found: dict[str, Criticality], truth: float) -> None:
    """Critical is told from hidden, in every place. How close the slopes come to the truth depends on how
    quiet the machine is: `python -m tests.benchmarks.criticality` measures that."""
    assert set(found) == {"data", "backward", "optimizer"}
    for one in found.values():
        assert (one.slope > 0.5) == (truth > 0.5), found


def test_a_thread_as_device_hides_the_host(tmp_path: Path) -> None:
    check(probed(tmp_path, DEVICE), 0.0)


def test_a_slow_loader_hides_the_loop(tmp_path: Path) -> None:
    check(probed(tmp_path, LOADER.format(sample=0.008, loop=0.003)), 0.0)


def test_a_loader_that_is_hidden_leaves_the_loop_critical(tmp_path: Path) -> None:
    check(probed(tmp_path, LOADER.format(sample=0.003, loop=0.008)), 1.0)


@pytest.mark.parametrize(("times", "truth"), [((0.04, 0.004), 1.0), ((0.004, 0.04), 0.0)])
def test_the_slower_of_two_ranks_is_critical(tmp_path: Path, times: tuple[float, ...], truth: float) -> None:
    """So far apart that a rank which has to wait for a core does not become the slower one."""
    check(probed(tmp_path, RANKS.format(times=times), LONG_STEPS), truth)
