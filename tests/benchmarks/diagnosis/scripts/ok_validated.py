"""A validation after every epoch of a hundred steps, and the best weights kept on disk."""

import os
import tempfile

import torch
from torch import nn

x, y = torch.randn(10000, 150), torch.randint(0, 6, (10000,))
held_x, held_y = torch.randn(1000, 150), torch.randint(0, 6, (1000,))
net = nn.Sequential(nn.Linear(150, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 6))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
best, target = 0.0, os.path.join(tempfile.mkdtemp(), "best.pt")


def accuracy():
    net.eval()
    with torch.inference_mode():
        right = (net(held_x).argmax(1) == held_y).float().mean().item()
    net.train()
    return right


for epoch in range(4):
    for rows in torch.randperm(10000).split(100):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    score = accuracy()
    if score > best:
        best = score
        torch.save(net.state_dict(), target)
    print(epoch, score)
