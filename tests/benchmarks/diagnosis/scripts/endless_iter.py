"""Step-based training: a fixed number of iterations instead of epochs."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def forever(loader):
    while True:
        yield from loader


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    fixed = parser.parse_args().fixed
    data = TensorDataset(torch.randn(5000, 64), torch.randint(0, 4, (5000,)))
    loader = DataLoader(data, batch_size=50, shuffle=True, num_workers=1, persistent_workers=fixed)
    batches = forever(loader)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for iteration in range(90):
        x, y = next(batches) if fixed else next(iter(loader))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
