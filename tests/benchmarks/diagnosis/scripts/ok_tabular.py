"""Tabular regression with the data held as tensors."""

import argparse

import torch
from torch import nn


class Table:
    """Shuffled batches by indexing two resident tensors."""

    def __init__(self, x, y, size):
        self.x, self.y, self.size = x, y, size

    def __len__(self):
        return len(self.x) // self.size

    def __iter__(self):
        order = torch.randperm(len(self.x))
        for start in range(0, len(self) * self.size, self.size):
            rows = order[start : start + self.size]
            yield self.x[rows], self.y[rows]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    x = torch.randn(16384, 96)
    batches = Table(x, x.pow(2).sum(1, keepdim=True), 256)
    model = nn.Sequential(nn.Linear(96, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        for features, target in batches:
            loss = nn.functional.mse_loss(model(features), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
