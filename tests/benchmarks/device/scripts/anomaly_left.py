"""Somebody looked for a NaN last week and left the detection on."""

import sys

import torch
import torch.nn as nn

if "--fixed" not in sys.argv:
    torch.autograd.set_detect_anomaly(True)

torch.manual_seed(15)


class Coder(nn.Module):
    def __init__(self, sizes=(60, 48, 32, 16)):
        super().__init__()
        steps = list(zip(sizes, sizes[1:]))
        self.down = nn.ModuleList(nn.Linear(a, b) for a, b in steps)
        self.up = nn.ModuleList(nn.Linear(b, a) for a, b in reversed(steps))

    def forward(self, x):
        for layer in self.down:
            x = nn.functional.elu(layer(x))
        z = x + 0.1 * torch.randn_like(x)
        for layer in self.up:
            z = nn.functional.elu(layer(z))
        return z


net = Coder().to("cuda")
optimizer = torch.optim.RAdam(net.parameters(), lr=1e-3)
signals = torch.randn(1000, 60, device="cuda")
for step in range(450):
    batch = signals[torch.randperm(1000, device="cuda")[:50]]
    loss = (net(batch) - batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"reconstruction {loss.item():.4f}")
