"""Train on records that live behind a slow object store (simulated by its latency)."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
options = parser.parse_args()


class Bucket:
    """Answers after a round trip, like any store over the network."""

    def __init__(self, latency):
        self.latency = latency

    def get(self, key):
        time.sleep(self.latency)
        generator = torch.Generator().manual_seed(key)
        return torch.randn(64, generator=generator)


class Records(Dataset):
    def __init__(self, bucket, count):
        self.bucket = bucket
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        record = self.bucket.get(i)
        return record, record[:8].sum()


def train(model, loader, epochs):
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(epochs):
        for x, y in loader:
            loss = nn.functional.huber_loss(model(x).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


if __name__ == "__main__":
    data = Records(Bucket(0.0015), 640)
    extra = {"num_workers": 8, "persistent_workers": True} if options.fixed else {}
    loader = DataLoader(data, batch_size=32, **extra)
    network = nn.Sequential(nn.Linear(64, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 1))
    print("final loss", train(network, loader, 6))
