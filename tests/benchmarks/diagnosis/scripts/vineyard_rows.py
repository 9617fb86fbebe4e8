"""Ripeness along the rows; the station is polled politely between two steps."""

import sys
import time

import torch
from torch import nn

POLITE = 0.0 if "--fixed" in sys.argv else 0.006


class Station:
    def __init__(self, rows):
        self.rows = rows

    def ask(self, n):
        if POLITE:
            time.sleep(POLITE)
        return torch.randn(n, self.rows), torch.rand(n)


station = Station(200)
net = nn.Sequential(nn.Linear(200, 300), nn.Tanh(), nn.Linear(300, 300), nn.Tanh(), nn.Linear(300, 1))
opt = torch.optim.Adagrad(net.parameters())
for _ in range(400):
    leaves, ripe = station.ask(64)
    miss = (net(leaves).squeeze(1) - ripe).pow(2).mean()
    opt.zero_grad()
    miss.backward()
    opt.step()
print(miss.item())
