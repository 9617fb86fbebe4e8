"""The device waits for data: every sample comes from a slow place, one after the other.

python -m trainers.scenarios.starved
"""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from sdk import TrainingMonitor

LINE_SECONDS = 0.002
"""What the place the samples come from takes for one of them."""


class RemoteSamples(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, count: int) -> None:
        self.samples = torch.randn(count, 64)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        time.sleep(LINE_SECONDS)
        return self.samples[index], self.samples[index].sum()


def main(steps: int = 100_000) -> None:
    TrainingMonitor.auto("demo-starved")
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(RemoteSamples(16 * steps // 1000), batch_size=16)
    for _ in range(1000):
        for inputs, targets in loader:
            loss = nn.functional.mse_loss(model(inputs).squeeze(1), targets)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()


if __name__ == "__main__":
    main()
