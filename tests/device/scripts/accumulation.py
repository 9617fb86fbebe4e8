"""Four micro-batches per optimizer step, each of which has to be waited for."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __iter__(self):
        for _batch in range(120):
            time.sleep(0.010)
            yield torch.randn(8, 32)


model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for number, x in enumerate(DataLoader(Stream(), batch_size=None)):
    (model(x.cuda()).pow(2).mean() / 4).backward()
    if number % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
