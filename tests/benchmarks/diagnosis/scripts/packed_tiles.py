"""Land-use classifier on compressed satellite tiles with random crops."""

import argparse
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Tiles(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(5)
        ground = rng.integers(0, 60, size=(count, 4, 96, 96), dtype=np.uint8)
        self.blobs = [zlib.compress(tile.tobytes(), 6) for tile in ground]
        self.labels = rng.integers(0, 6, size=count)

    def __len__(self):
        return len(self.blobs)

    def __getitem__(self, i):
        tile = np.frombuffer(zlib.decompress(self.blobs[i]), np.uint8).reshape(4, 96, 96)
        row, column = np.random.randint(0, 32, size=2)
        crop = tile[:, row : row + 64, column : column + 64].astype(np.float32)
        crop = crop / 60 + np.random.normal(0, 0.02, size=crop.shape)
        return torch.from_numpy(crop.astype(np.float32)), int(self.labels[i])


def network():
    return nn.Sequential(
        nn.Conv2d(4, 24, 5, stride=2), nn.ReLU(), nn.Conv2d(24, 48, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(768, 6),
    )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    workers = 1 if parser.parse_args().fixed else 0
    loader = DataLoader(
        Tiles(640), batch_size=20, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    model, criterion = network(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(5):
        for crops, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(crops), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f}")
