"""Point-cloud classifier; frames come from a spinning disk (simulated latency) through a DataLoader."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Frames(Dataset):
    def __init__(self, n):
        self.n = n
        self.template = torch.randn(10, 128, 3)

    def __len__(self):
        return self.n

    def _seek_and_read(self, i):
        time.sleep(0.002)
        return self.template[i % 10] + 0.05 * torch.randn(128, 3)

    def __getitem__(self, i):
        return self._seek_and_read(i), i % 10


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.local = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 128), nn.ReLU())
        self.head = nn.Linear(128, 10)

    def forward(self, points):
        return self.head(self.local(points).max(dim=1).values)


def run(num_workers):
    loader = DataLoader(
        Frames(960), batch_size=16, shuffle=True, num_workers=num_workers, persistent_workers=True
    )
    model, criterion = PointNet(), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), 3e-4)
    for epoch in range(3):
        for points, label in loader:
            optimizer.zero_grad(set_to_none=True)
            criterion(model(points), label).backward()
            optimizer.step()


if __name__ == "__main__":
    run(6 if "--fixed" in sys.argv else 1)
