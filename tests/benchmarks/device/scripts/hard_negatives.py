"""Retrieval with hard negatives: every batch is chosen by the scores of all items."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

ITEMS, BATCH, STEPS = 200_000, 32, 200


class Items(Dataset):
    def __init__(self):
        self.vectors = torch.randn(512, 48)

    def __len__(self):
        return ITEMS

    def __getitem__(self, i):
        return self.vectors[i % 512], i % 2


class HardestFirst(Sampler):
    def __init__(self, every):
        self.rng = np.random.default_rng(0)
        self.scores = self.rng.random(ITEMS)
        self.every = every

    def __len__(self):
        return STEPS

    def __iter__(self):
        for step in range(STEPS):
            if step % self.every == 0:
                order = np.argsort(self.scores)
            start = int(self.rng.integers(ITEMS // 4))
            batch = order[start : start + BATCH]
            self.scores[batch] += 0.1
            yield batch.tolist()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true", help="sort anew every 50 batches")
    options = parser.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(Items(), batch_sampler=HardestFirst(50 if options.fixed else 1))
    tower = nn.Sequential(
        nn.Linear(48, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2)
    ).cuda()
    optimizer = torch.optim.AdamW(tower.parameters())
    for x, y in loader:
        loss = nn.functional.cross_entropy(tower(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())


main()
