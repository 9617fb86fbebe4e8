"""Loops whose criticality is known: what paces each of them sleeps, and hardly anything else takes time.

The integration tests and the benchmark run the same ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.device.speeds import Speeds

ROOT = Path(__file__).parents[3]
PLACES = ("data", "backward", "optimizer")
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
THREAD = """
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
CLIPPED = """
for x in DataLoader(Samples(0.0)):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    time.sleep(0.008)
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
DEVICE = """
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS = int(sys.argv[1])
torch.set_num_threads(1)
model = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range({layers})]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for (x,) in DataLoader(TensorDataset(torch.ones(STEPS * 4, 8)), batch_size=4, pin_memory=False):
    optimizer.zero_grad()
    model(x.cuda(non_blocking=True)).pow(2).mean().backward()
    optimizer.step()
torch.cuda.synchronize()
"""


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A script, the slope every place of it has, and how many steps a figure takes."""

    what: str
    truth: float
    script: str
    steps: int = 10_000
    places: tuple[str, ...] = PLACES
    speeds: Speeds | None = None
    """Of the stand-in for a GPU, where it trains on one."""


LOOPS = {
    "thread": Loop(what="a thread as device, fed by a queue of two", truth=0.0, script=THREAD),
    "slow_loader": Loop(
        what="a loader that takes longer than the loop", truth=0.0,
        script=LOADER.format(sample=0.008, loop=0.003),
    ),
    "hidden_loader": Loop(
        what="a loader hidden behind the loop", truth=1.0, script=LOADER.format(sample=0.003, loop=0.008)
    ),
    "side_job": Loop(
        what="a loop that clips gradients, nothing beside it", truth=1.0, script=CLIPPED,
        places=(*PLACES, "grad_norm"), steps=12_000,
    ),
    "slow_rank": Loop(
        what="the slower of two ranks", truth=1.0, script=RANKS.format(times=(0.02, 0.004)), steps=4_000
    ),
    "fast_rank": Loop(
        what="the faster of two ranks", truth=0.0, script=RANKS.format(times=(0.004, 0.02)), steps=4_000
    ),
    "device_bound": Loop(
        what="stand-in device, its own work takes longest", truth=0.0, script=DEVICE.format(layers=4),
        speeds=Speeds(kernels_us={"addmm": 1500.0, "mm": 1000.0}, queue_length=128), steps=8_000,
    ),
    "launch_bound": Loop(
        what="stand-in device, the host's launches take longest", truth=1.0, script=DEVICE.format(layers=40),
        speeds=Speeds(), steps=8_000,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Probed:
    """What `gpumon run --probe` reported; `error` where it failed."""

    report: dict[str, Any] = field(default_factory=dict)
    error: str = ""

    @property
    def places(self) -> dict[str, dict[str, Any]]:
        return {one["place"]: one for one in self.report.get("criticality", [])}


def probed(
    folder: Path, loop: Loop, steps: int, budget: float | None, timeout: float, python: str = sys.executable
) -> Probed:
    """The loop under `gpumon run --probe`, in an empty folder; the default budget where none is named."""
    (folder / "rings").mkdir(mode=0o700)
    (folder / "train.py").write_text((BEGIN if loop.speeds is None else "") + loop.script)
    share = [] if budget is None else ["--probe-budget", str(budget)]
    options = ["run", "--probe", *share, "--no-live", "--no-summary", "--json", "report.json", "--"]
    done = subprocess.run(
        [sys.executable, "-m", "monitor.cli.main", *options, python, "train.py", str(steps)],
        cwd=folder, env=_environment(folder, loop), capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip
    target = folder / "report.json"
    if done.returncode or not target.exists():
        return Probed(error=f"exit code {done.returncode}: {done.stderr.strip()[-600:]}")
    return Probed(json.loads(target.read_text()))


def _environment(folder: Path, loop: Loop) -> dict[str, str]:
    from tests import device

    env = {**os.environ, "GPUMON_DIR": str(folder / "rings"), "XDG_STATE_HOME": str(folder / "state")}
    if loop.speeds is not None:
        env |= device.environment(loop.speeds, folder)
    paths = [env.get("PYTHONPATH", ""), str(ROOT)]
    return env | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}
