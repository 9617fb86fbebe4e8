"""Delays of trams, one line of the network an epoch: forty short epochs, two loader processes started for each."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Line(Dataset):
    def __init__(self):
        self.x = torch.randn(640, 30)

    def __len__(self):
        return 640

    def __getitem__(self, i):
        row = self.x[i]
        return torch.fft.rfft(row).abs(), row.sum()


def main():
    torch.manual_seed(1)
    loader = DataLoader(Line(), batch_size=64, num_workers=2, persistent_workers="--fixed" in sys.argv)
    model = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    for epoch in range(40):
        total = 0.0
        for x, y in loader:
            loss = (model(x).squeeze(1) - y).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
    print(total.item() / len(loader))


if __name__ == "__main__":
    main()
