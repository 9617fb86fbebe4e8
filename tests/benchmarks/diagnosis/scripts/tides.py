"""Tide height from harmonic features: a wide MLP fed from NumPy arrays."""

import argparse

import numpy as np
import torch
import torch.nn as nn


def batches(x, y, size):
    order = np.random.permutation(len(x))
    for start in range(0, len(x) - size + 1, size):
        rows = order[start : start + size]
        yield x[rows], y[rows]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--fixed", action="store_true")
    fixed = p.parse_args().fixed
    hours = np.linspace(0, 5000, 20000)
    x = np.stack([np.sin(hours * k / 12.42) for k in range(1, 65)], axis=1)
    y = x @ np.random.default_rng(0).normal(size=64)
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
    if fixed:
        x, y = x.float(), y.float()
    else:
        model = model.double()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(3):
        for xb, yb in batches(x, y, 256):
            loss = ((model(xb).squeeze(1) - yb) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, float(loss))


main()
