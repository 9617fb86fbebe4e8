"""Hard-example mining: the sampler draws every batch by weight from the whole set."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class HardSampler:
    """Batches drawn with a chance that grows with a sample's difficulty."""

    def __init__(self, difficulty, batch_size, batches, ahead):
        self.chance = difficulty / difficulty.sum()
        self.batch_size, self.batches, self.ahead = batch_size, batches, ahead
        self.rng = np.random.default_rng(0)

    def __len__(self):
        return self.batches

    def __iter__(self):
        if self.ahead:
            drawn = self.rng.choice(len(self.chance), size=(self.batches, self.batch_size), p=self.chance)
            yield from drawn.tolist()
            return
        for _ in range(self.batches):
            yield self.rng.choice(len(self.chance), size=self.batch_size, p=self.chance).tolist()


class Points(Dataset):
    def __init__(self, count):
        self.x = torch.randn(count, 80)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.x[i, 0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    data = Points(400_000)
    difficulty = np.random.default_rng(1).uniform(0.1, 1.0, size=len(data))
    sampler = HardSampler(difficulty, 64, 150, parser.parse_args().fixed)
    loader = DataLoader(data, batch_sampler=sampler)
    model = nn.Sequential(nn.Linear(80, 700), nn.ReLU(), nn.Linear(700, 700), nn.ReLU(), nn.Linear(700, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(3):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
