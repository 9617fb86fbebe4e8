"""Microphones to speech; the table of delays is worked out anew for every batch, although the room never changes."""

import math
import sys

import torch
from torch import nn

MICROPHONES, DIRECTIONS, BINS = 8, 36, 33
positions = [(0.05 * i, 0.02 * (i % 3)) for i in range(MICROPHONES)]


def steering():
    table = torch.zeros(DIRECTIONS, MICROPHONES, BINS)
    for d in range(DIRECTIONS):
        angle = 2 * math.pi * d / DIRECTIONS
        for m, (x, y) in enumerate(positions):
            delay = (x * math.cos(angle) + y * math.sin(angle)) / 343.0
            table[d, m] = torch.cos(2 * math.pi * delay * torch.arange(BINS) * 125.0)
    return table


class Beams(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(DIRECTIONS * BINS, 256), nn.ReLU(), nn.Linear(256, 40))

    def forward(self, frames, table):
        return self.net(torch.einsum("bmf,dmf->bdf", frames, table).flatten(1))


torch.manual_seed(13)
net = Beams()
opt = torch.optim.Adam(net.parameters(), fused=True)
fixed_table = steering()
for step in range(350):
    table = fixed_table if "--fixed" in sys.argv else steering()
    frames = torch.randn(64, MICROPHONES, BINS)
    loss = nn.functional.mse_loss(net(frames, table), torch.zeros(64, 40))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
