"""Dose prediction from scans on a network share, two readers for a slow line."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Scans(Dataset):
    def __init__(self, count):
        self.volumes = np.random.default_rng(8).normal(size=(40, 8, 24, 24)).astype(np.float32)
        self.count = count

    def __len__(self):
        return self.count

    def fetch(self, i):
        time.sleep(0.006)
        return self.volumes[i % 40]

    def __getitem__(self, i):
        volume = torch.from_numpy(self.fetch(i))
        return volume, volume.mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    readers = 8 if parser.parse_args().fixed else 2
    loader = DataLoader(Scans(480), batch_size=8, shuffle=True, num_workers=readers, persistent_workers=True)
    model = nn.Sequential(
        nn.Conv2d(8, 48, 3), nn.ReLU(), nn.Conv2d(48, 48, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48 * 400, 1)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for epoch in range(3):
        for volume, dose in loader:
            loss = nn.functional.mse_loss(model(volume).squeeze(1), dose)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
