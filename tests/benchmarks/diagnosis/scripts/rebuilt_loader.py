"""Quality control in rounds, each with its own DataLoader."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def loader_of(data):
    return DataLoader(data, batch_size=50, shuffle=True, num_workers=1, persistent_workers=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    keep = parser.parse_args().fixed
    data = TensorDataset(torch.randn(800, 1, 16, 16), torch.randint(0, 3, (800,)))
    model = nn.Sequential(
        nn.Conv2d(1, 24, 3), nn.ReLU(), nn.Conv2d(24, 24, 3), nn.ReLU(), nn.Flatten(), nn.Linear(24 * 144, 3)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = loader_of(data)
    for round_number in range(30):
        if not keep:
            loader = loader_of(data)
        for part, verdict in loader:
            loss = nn.functional.cross_entropy(model(part), verdict)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(loss.item())
