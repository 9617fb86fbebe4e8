"""Reads scanned lines of text; every line is straightened and shrunk when it is asked for."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def straighten(page, width=64):
    height = page.shape[0]
    columns = np.linspace(0, page.shape[1] - 1, width)
    out = np.zeros((height, width), dtype=np.float32)
    for row in range(height):
        shift = 0.05 * (row - height / 2)
        out[row] = np.interp(columns + shift, np.arange(page.shape[1]), page[row])
    return out / 255


class Lines(Dataset):
    def __init__(self, count, prepared):
        rng = np.random.default_rng(12)
        self.pages = rng.integers(0, 255, size=(count, 32, 200)).astype(np.float32)
        self.letters = rng.integers(0, 26, size=count)
        self.straight = [straighten(page) for page in self.pages] if prepared else None

    def __len__(self):
        return len(self.pages)

    def __getitem__(self, i):
        line = straighten(self.pages[i]) if self.straight is None else self.straight[i]
        return torch.from_numpy(line)[None], int(self.letters[i])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    data = Lines(960, parser.parse_args().fixed)
    loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=1, persistent_workers=True)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.LazyLinear(26),
    )
    model(torch.zeros(1, 1, 32, 64))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(6):
        for line, letter in loader:
            loss = nn.functional.cross_entropy(model(line), letter)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
