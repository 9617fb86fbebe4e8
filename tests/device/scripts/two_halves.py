"""A model in two halves on two devices: while one computes, the other waits."""

import torch
from torch import nn

front = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU()).to("cuda:0")
back = nn.Sequential(*(nn.Linear(64, 64) for _ in range(3)), nn.Linear(64, 8)).to("cuda:1")
optimizer = torch.optim.SGD([*front.parameters(), *back.parameters()], lr=0.01)
inputs, targets = torch.randn(16, 32, device="cuda:0"), torch.randn(16, 8, device="cuda:1")
for _step in range(100):
    loss = nn.functional.mse_loss(back(front(inputs).to("cuda:1")), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()
