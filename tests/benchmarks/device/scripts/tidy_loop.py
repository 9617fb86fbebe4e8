"""Afraid of running out of memory: collects garbage and empties the cache every tenth step."""

import gc
import sys

import torch
from torch import nn

tidy = "--fixed" not in sys.argv
torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv1d(4, 32, 5), nn.ReLU(), nn.Conv1d(32, 32, 5), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 56, 3)
).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
signal = torch.randn(16, 4, 64, device="cuda")
label = torch.randint(3, (16,), device="cuda")
for step in range(200):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(net(signal), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if tidy and step % 10 == 0:
        gc.collect()
        torch.cuda.empty_cache()
print("loss", loss.item())
