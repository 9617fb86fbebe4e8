"""A tiny model under DistributedDataParallel on gloo; a batch takes as long to load as the argument says."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from sdk import TrainingMonitor

STEPS = 20_000
"""More than any test waits for: the tests end it."""


def batches(seconds: float) -> Iterator[torch.Tensor]:
    for _ in range(STEPS):
        time.sleep(seconds)
        yield torch.randn(16, 32)


def main() -> None:
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with TrainingMonitor("ddp", batch_size=16) as monitor:
        for batch in monitor.loader(batches(float(sys.argv[1]))):
            with monitor.phase("forward"):
                loss = model(batch).square().mean()
            with monitor.phase("backward"):
                loss.backward()
            with monitor.phase("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
            monitor.step()


if __name__ == "__main__":
    main()
