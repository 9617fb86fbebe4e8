"""Twenty values read from the device a step: every read waits for it."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, required=True)

layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(20)).to("cuda")
optimizer = torch.optim.SGD(layers.parameters(), lr=1e-3)
x = torch.randn(16, 32, device="cuda")
for _step in range(parser.parse_args().steps):
    state, largest = x, 0.0
    for layer in layers:
        state = torch.tanh(layer(state))
        largest = max(largest, state[0, 0].item())
    optimizer.zero_grad()
    state.pow(2).mean().backward()
    optimizer.step()
print(largest)
