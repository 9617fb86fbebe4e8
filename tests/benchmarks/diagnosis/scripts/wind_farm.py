"""Turbine faults from noisy sensor windows, mixed up anew for every epoch."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Turbines(Dataset):
    def __init__(self, count):
        self.signals = np.random.default_rng(9).normal(size=(count, 8, 256)).astype(np.float32)

    def __len__(self):
        return len(self.signals)

    def __getitem__(self, i):
        signal = self.signals[i] + np.random.normal(0, 0.1, size=(8, 256))
        signal = np.roll(signal, np.random.randint(256), axis=1)
        mask = np.random.rand(8, 256) > 0.05
        spectrum = np.abs(np.fft.rfft(signal * mask, axis=1))
        return torch.from_numpy(spectrum.astype(np.float32)), i % 5


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    workers = 1 if parser.parse_args().fixed else 0
    loader = DataLoader(
        Turbines(1600), batch_size=80, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(8 * 129, 1400),
        nn.ReLU(),
        nn.Linear(1400, 1400),
        nn.ReLU(),
        nn.Linear(1400, 5),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(5):
        for spectrum, fault in loader:
            loss = nn.functional.cross_entropy(model(spectrum), fault)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
