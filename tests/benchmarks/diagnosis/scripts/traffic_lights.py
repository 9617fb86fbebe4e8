"""Traffic-light states from camera stills that are asked for one by one."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Stills(Dataset):
    def __init__(self, count):
        self.frames = torch.randn(60, 3, 40, 40)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        time.sleep(0.0008)
        return self.frames[i % 60], i % 3


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    workers = 4 if parser.parse_args().fixed else 0
    loader = DataLoader(
        Stills(1440), batch_size=24, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    model = nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.LazyLinear(3),
    )
    model(torch.zeros(1, 3, 40, 40))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(3):
        for frames, state in loader:
            loss = nn.functional.cross_entropy(model(frames), state)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
