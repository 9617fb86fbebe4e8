"""Good seeds, bad seeds: small bags, each an epoch of its own."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Bag(Dataset):
    def __init__(self):
        self.pictures = torch.randint(0, 255, (320, 3, 24, 24), dtype=torch.uint8)

    def __len__(self):
        return 320

    def __getitem__(self, i):
        return self.pictures[i].float().div(255), i % 2


class Sorter:
    def __init__(self, stay):
        self.loader = DataLoader(Bag(), 40, shuffle=True, num_workers=2, persistent_workers=stay)
        self.net = nn.Sequential(
            nn.Conv2d(3, 24, 3, 2),
            nn.ReLU(),
            nn.Conv2d(24, 32, 3, 2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(800, 2),
        )
        self.opt = torch.optim.RMSprop(self.net.parameters(), lr=1e-3)

    def bag(self):
        for picture, good in self.loader:
            self.opt.zero_grad()
            nn.functional.cross_entropy(self.net(picture), good).backward()
            self.opt.step()


if __name__ == "__main__":
    sorter = Sorter("--fixed" in sys.argv)
    for _ in range(40):
        sorter.bag()
