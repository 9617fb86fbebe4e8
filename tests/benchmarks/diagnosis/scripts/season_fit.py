"""Seasonal model fitted in many small passes over one season's rows."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def season(persistent):
    data = TensorDataset(torch.randn(512, 64), torch.randn(512, 1))
    return DataLoader(data, batch_size=64, shuffle=True, num_workers=2, persistent_workers=persistent)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    loader = season(parser.parse_args().fixed)
    model = nn.Sequential(nn.Linear(64, 700), nn.ReLU(), nn.Linear(700, 700), nn.ReLU(), nn.Linear(700, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for pass_number in range(40):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(loss.item())
