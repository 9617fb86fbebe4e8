"""An endless stream of made-up signals from two loader processes that keep up."""

import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Signals(IterableDataset):
    def __iter__(self):
        while True:
            phase = torch.rand(16, 1) * 6.28
            yield torch.sin(torch.linspace(0, 20, 256) + phase), phase.squeeze(1)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(256, 1500), nn.ReLU(), nn.Linear(1500, 1500), nn.ReLU(), nn.Linear(1500, 1)
    )
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    loader = DataLoader(Signals(), batch_size=16, num_workers=1, prefetch_factor=4)
    for x, y in itertools.islice(loader, 130):
        loss = nn.functional.smooth_l1_loss(model(x.flatten(0, 1)).squeeze(1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
