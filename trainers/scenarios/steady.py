"""A training with nothing wrong in it: what happens, happens to the GPU.

python -m trainers.scenarios.steady
"""

from __future__ import annotations

import torch
from torch import nn

from sdk import TrainingMonitor


def main(steps: int = 1_000_000) -> None:
    TrainingMonitor.auto("demo-steady")
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(256, 256)
    targets = inputs.sum(1, keepdim=True)
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


if __name__ == "__main__":
    main()
