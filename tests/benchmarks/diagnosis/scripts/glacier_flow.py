"""Glacier velocities. Each layer has a learning rate of its own."""

import sys

import torch
from torch import nn

layers = []
for _ in range(30):
    layers += [nn.Linear(128, 128), nn.LayerNorm(128), nn.ReLU()]
net = nn.Sequential(*layers, nn.Linear(128, 2))
if "--fixed" in sys.argv:
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
else:
    groups = [{"params": [p], "lr": 1e-3 * 0.999**i} for i, p in enumerate(net.parameters())]
    opt = torch.optim.Adam(groups)
height, speed = torch.randn(3000, 128), torch.randn(3000, 2)
for epoch in range(10):
    for rows in torch.randperm(3000).split(100):
        loss = nn.functional.l1_loss(net(height[rows]), speed[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
print(loss.item())
