"""Cats or dogs. Pictures lie compressed in memory; each is unpacked, cropped and flipped when it is asked for."""

import random
import sys
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 96


class Pets(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(0)
        base = rng.integers(0, 40, (SIDE, SIDE, 3), dtype=np.uint8)
        self.files = [zlib.compress((base + i % 200).astype(np.uint8).tobytes(), 6) for i in range(count)]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        image = np.frombuffer(zlib.decompress(self.files[i]), np.uint8).reshape(SIDE, SIDE, 3)
        top, left = random.randint(0, 32), random.randint(0, 32)
        image = image[top : top + 64, left : left + 64].astype(np.float32) / 255.0
        image = (image - image.mean((0, 1))) / (image.std((0, 1)) + 1e-6)
        if random.random() < 0.5:
            image = image[:, ::-1]
        return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1))), i % 2


def build():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, 2, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 2),
    )


def main():
    torch.manual_seed(0)
    workers = {"num_workers": 2, "persistent_workers": True} if "--fixed" in sys.argv else {}
    loader = DataLoader(Pets(6000), batch_size=64, shuffle=True, **workers)
    net = build()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(2):
        for images, labels in loader:
            loss = nn.functional.cross_entropy(net(images), labels)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
