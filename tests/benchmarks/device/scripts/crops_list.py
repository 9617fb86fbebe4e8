"""Crops of different frames, kept in a list and sent to the GPU one at a time."""

import argparse
import random

import torch
from torch import nn

p = argparse.ArgumentParser()
p.add_argument("--fixed", action="store_true")
p.add_argument("--iters", type=int, default=450)
a = p.parse_args()
random.seed(0)
torch.manual_seed(0)

frames = [torch.rand(3, 120, 120) for _ in range(40)]
staging = [torch.empty(32, 3, 88, 88, pin_memory=True) for _ in range(4)]


def crop(frame):
    top, left = random.randrange(32), random.randrange(32)
    return frame[:, top : top + 88, left : left + 88].contiguous()


def one_by_one():
    return torch.stack([crop(random.choice(frames)).to("cuda") for _ in range(32)])


def together(it):
    buffer = staging[it % 4]
    torch.stack([crop(random.choice(frames)) for _ in range(32)], out=buffer)
    return buffer.to("cuda", non_blocking=True)


backbone = nn.Sequential(
    nn.Conv2d(3, 16, 7, stride=4),
    nn.ReLU(),
    nn.Conv2d(16, 32, 3, stride=2),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(2),
)
model = nn.Sequential(backbone, nn.Flatten(), nn.Linear(128, 20)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for it in range(a.iters):
    batch = together(it) if a.fixed else one_by_one()
    target = torch.randint(20, (32,), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(batch), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done", loss.item())
