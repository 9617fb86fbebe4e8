"""Memory grows with every step: the losses are kept, and each of them keeps its whole graph.

python -m trainers.scenarios.leak
"""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn

from sdk import TrainingMonitor

STEPS, STEP_SECONDS = 6000, 0.01
"""The pause bounds how fast memory grows: a demonstration is no reason to fill a machine."""


def main() -> None:
    TrainingMonitor.auto("demo-leak")
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    history: list[Tensor] = []
    for _ in range(STEPS):
        inputs = torch.randn(64, 64)
        loss = nn.functional.mse_loss(model(inputs).squeeze(1), inputs.sum(1))
        optimizer.zero_grad()
        loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]
        optimizer.step()
        history.append(loss)
        time.sleep(STEP_SECONDS)


if __name__ == "__main__":
    main()
