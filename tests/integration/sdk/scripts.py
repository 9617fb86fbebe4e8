"""Training scripts the tests start as real processes, and how to start them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests import warm
from tests.conftest import PATIENCE

ROOT = Path(__file__).parents[3]

HEAD = """
import os, sys, time, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
torch.set_num_threads(1)

class Data(Dataset):
    def __init__(self, count=64): self.count = count
    def __len__(self): return self.count
    def __getitem__(self, index):
        time.sleep(0.0005)
        return torch.full((4,), float(index)), torch.tensor(index % 2)

def net():
    torch.manual_seed(1)
    model = nn.Linear(4, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.01)

def step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss
"""

AUTO = (
    HEAD
    + """
def main(workers=0, context=None, epochs=2, persistent=False):
    model, optimizer = net()
    loader = DataLoader(Data(), batch_size=8, num_workers=workers, multiprocessing_context=context,
                        persistent_workers=persistent)
    for _ in range(epochs):
        for x, y in loader:
            loss = step(model, optimizer, x, y)
    print("result", sum(p.double().sum().item() for p in model.parameters()).hex(), flush=True)
"""
)

PLAIN = """
import sys, time
from sdk import TrainingMonitor
with TrainingMonitor("plain") as m:
    for number in m.loader(range(int(sys.argv[1]))):
        with m.phase("backward"):
            if number == int(sys.argv[2]):
                print("stuck", flush=True)
                time.sleep(60)
        m.step()
"""


def environment(directory: Path, **extra: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMON", "SLURM"))}
    return {**kept, "PYTHONPATH": str(ROOT), "GPUMON_DIR": str(directory), "OMP_NUM_THREADS": "1", **extra}


def start(script: Path, directory: Path, *words: str, **options: Any) -> subprocess.Popen[str]:
    """A script that uses torch has it from the start unless another `python` is named."""
    env = environment(directory, **options.pop("env", {}))
    python = options.pop("python", None) or (
        warm.python() if "torch" in script.read_text() else sys.executable
    )
    command = [*options.pop("front", ()), python, str(script), *words]
    return subprocess.Popen(
        command,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=script.parent,
        **options,
    )


def finish(script: Path, directory: Path, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    child = start(script, directory, *words, **options)
    out, err = child.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(child.args, child.returncode, out, err)


def write(folder: Path, text: str, name: str = "train.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def gpumon(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "monitor.cli.main", "run", "--no-summary", *words, "--")
