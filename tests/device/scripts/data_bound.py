"""Every batch takes 20 ms to load, and the loss is read before the next one is requested."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def collate(samples):
    time.sleep(0.020)
    return torch.utils.data.default_collate(samples)


data = TensorDataset(torch.randn(320, 32), torch.randint(0, 4, (320,)))
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for x, y in DataLoader(data, batch_size=8, collate_fn=collate):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    loss.item()
