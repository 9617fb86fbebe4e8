"""Two models on two devices that know nothing of each other, one with more to compute."""

import torch
from torch import nn

small = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)).to("cuda:0")
large = nn.Sequential(*(nn.Linear(32, 32) for _ in range(5)), nn.Linear(32, 8)).to("cuda:1")
optimizer = torch.optim.SGD([*small.parameters(), *large.parameters()], lr=0.01)
first, second = torch.randn(16, 32, device="cuda:0"), torch.randn(16, 32, device="cuda:1")
for _step in range(100):
    one, other = small(first).square().mean(), large(second).square().mean()
    optimizer.zero_grad()
    one.backward()
    other.backward()
    optimizer.step()
    one.item(), other.item()
