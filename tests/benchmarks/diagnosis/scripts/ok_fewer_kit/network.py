"""A small wide residual network."""

import torch.nn.functional as F
from torch import nn


class Residual(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm2d(before), nn.BatchNorm2d(after)
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.short = nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x):
        ready = F.leaky_relu(self.norm1(x), 0.1)
        return self.short(ready) + self.conv2(F.leaky_relu(self.norm2(self.conv1(ready)), 0.1))


class WideNet(nn.Module):
    def __init__(self, channels, width, kinds):
        super().__init__()
        self.stem = nn.Conv2d(channels, width, 3, 2, 1)
        self.blocks = nn.Sequential(Residual(width, 2 * width, 1), Residual(2 * width, 4 * width, 2))
        self.norm = nn.BatchNorm2d(4 * width)
        self.head = nn.Linear(4 * width, kinds)

    def forward(self, x):
        return self.head(F.leaky_relu(self.norm(self.blocks(self.stem(x))), 0.1).mean((2, 3)))
