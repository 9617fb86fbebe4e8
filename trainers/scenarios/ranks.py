"""Data-parallel training in four processes, in which one rank is slow, or stops for good.

python -m trainers.scenarios.ranks --slow 2
python -m trainers.scenarios.ranks --hang 2
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from sdk import TrainingMonitor

RANKS = 4
USUAL_SECONDS, SLOW_SECONDS = 0.001, 0.004
"""What a sample takes, on a usual rank and on the slow one."""
HANGS_AT = 1200
"""The sample that never comes."""


class Shard(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, seconds: float, hangs_at: int | None) -> None:
        self.samples, self.seconds, self.hangs_at = torch.randn(8000, 32), seconds, hangs_at

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        if index == self.hangs_at:
            time.sleep(3600)  # a file server that does not answer
        time.sleep(self.seconds)
        return self.samples[index], self.samples[index].sum()


def train(rank: int, meeting: str, slow: int | None, hang: int | None) -> None:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS))
    torch.set_num_threads(1)
    TrainingMonitor.auto("demo-ranks")
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=RANKS)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    shard = Shard(SLOW_SECONDS if rank == slow else USUAL_SECONDS, HANGS_AT if rank == hang else None)
    for _ in range(1000):
        for inputs, targets in DataLoader(shard, batch_size=16):
            loss = nn.functional.mse_loss(model(inputs).squeeze(1), targets)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--slow", type=int)
    parser.add_argument("--hang", type=int)
    args = parser.parse_args()
    os.environ.setdefault("GPUMON_RUN_ID", f"demo-ranks-{os.getpid()}")
    meeting = Path.cwd() / f"meeting-{os.getpid()}"
    spawn(train, args=(str(meeting), args.slow, args.hang), nprocs=RANKS)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
