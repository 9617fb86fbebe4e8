"""Pedestrian counter written for a machine with more cores than this one."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU()
        )
        self.count = nn.Linear(32, 1)

    def forward(self, frames):
        return self.count(self.features(frames).mean((2, 3)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    torch.set_num_threads(2 if parser.parse_args().fixed else 6)
    model = Counter()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = TensorDataset(torch.randn(480, 3, 64, 64), torch.rand(480, 1))
    for epoch in range(4):
        for frames, people in DataLoader(data, batch_size=16, shuffle=True):
            loss = nn.functional.mse_loss(model(frames), people)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
