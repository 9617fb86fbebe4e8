"""Surrogate for a heat solver; the solver writes double precision, so the network does, too."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    rng = np.random.default_rng(6)
    fields = rng.normal(size=(6000, 100))
    x, y = torch.from_numpy(fields[:, :-4]), torch.from_numpy(fields[:, -4:])
    model = nn.Sequential(
        nn.Linear(96, 400), nn.Tanh(), nn.Linear(400, 400), nn.Tanh(), nn.Linear(400, 4)
    ).double()
    if parser.parse_args().fixed:
        x, y, model = x.float(), y.float(), model.float()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(6):
        for a, b in DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True):
            loss = nn.functional.mse_loss(model(a), b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
