"""A network of parts, each with a score that is written down as the batch goes through."""

import argparse
from collections import defaultdict

import torch
import torch.nn as nn

cli = argparse.ArgumentParser()
cli.add_argument("--fixed", action="store_true")
cli.add_argument("--parts", type=int, default=16)
opts = cli.parse_args()

torch.manual_seed(5)
scores = defaultdict(list)


class Part(nn.Module):
    def __init__(self, name, width=64):
        super().__init__()
        self.name = name
        self.lin = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        x = x + torch.tanh(self.norm(self.lin(x)))
        score = x.detach().abs().mean()
        scores[self.name].append(score if opts.fixed else score.item())
        return x


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(Part(f"part{i}") for i in range(opts.parts))
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return self.head(x)


model = Parts().cuda()
sgd = torch.optim.SGD(model.parameters(), lr=0.02)
for it in range(450):
    x = torch.randn(48, 64, device="cuda")
    y = torch.randint(10, (48,), device="cuda")
    loss = nn.functional.cross_entropy(model(x), y)
    sgd.zero_grad()
    loss.backward()
    sgd.step()
for name, values in scores.items():
    print(name, float(torch.tensor([float(v) for v in values]).mean()))
