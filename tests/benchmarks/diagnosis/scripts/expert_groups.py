"""Mixture of small experts, every layer with a learning rate of its own."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Experts(nn.Module):
    def __init__(self, count=24):
        super().__init__()
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32)) for _ in range(count)
        )
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        return self.out(torch.stack([expert(x) for expert in self.experts]).mean(0))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    fixed = parser.parse_args().fixed
    model = Experts()
    if fixed:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    else:
        groups = [{"params": [p], "lr": 1e-3 * 0.999**i} for i, p in enumerate(model.parameters())]
        optimizer = torch.optim.Adam(groups)
    data = TensorDataset(torch.randn(6400, 32), torch.randn(6400, 1))
    for epoch in range(3):
        for x, y in DataLoader(data, batch_size=64, shuffle=True):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
