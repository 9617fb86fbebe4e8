"""Votes on forum posts, loaded by as many workers as the tutorial used."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    workers = 0 if parser.parse_args().fixed else 6
    posts, votes = torch.randn(9600, 60), torch.randn(9600, 1)
    loader = DataLoader(
        TensorDataset(posts, votes), batch_size=64, num_workers=workers, persistent_workers=workers > 0
    )
    model = nn.Sequential(nn.Linear(60, 160), nn.ReLU(), nn.Linear(160, 160), nn.ReLU(), nn.Linear(160, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(6):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
