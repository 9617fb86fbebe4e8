"""Tempo of drum loops with a small convolutional net, debugging switched on since last week."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build():
    return nn.Sequential(
        nn.Conv1d(1, 16, 9, stride=4), nn.ReLU(), nn.Conv1d(16, 32, 9, stride=4), nn.ReLU(),
        nn.Conv1d(32, 32, 5, stride=2), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 1),
    )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    if not parser.parse_args().fixed:
        torch.autograd.set_detect_anomaly(True)
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    data = TensorDataset(torch.randn(1600, 1, 1024), torch.rand(1600, 1))
    for epoch in range(4):
        for wave, tempo in DataLoader(data, batch_size=16, shuffle=True):
            loss = nn.functional.l1_loss(model(wave), tempo)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
