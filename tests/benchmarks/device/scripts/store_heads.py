"""Sales of 50 stores: a shared trunk and a small head for each store, one after the other."""

import sys

import torch
from torch import nn

STORES, WIDTH = 50, 24
torch.manual_seed(0)


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(16, WIDTH), nn.ReLU())
        self.heads = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 8), nn.Tanh(), nn.Linear(8, 1)) for _ in range(STORES)
        )

    def forward(self, x):
        h = self.trunk(x)
        return torch.cat([head(h) for head in self.heads], dim=1)


class HeadsAtOnce(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(16, WIDTH), nn.ReLU())
        self.w1 = nn.Parameter(torch.randn(STORES, WIDTH, 8) / WIDTH**0.5)
        self.b1 = nn.Parameter(torch.zeros(STORES, 1, 8))
        self.w2 = nn.Parameter(torch.randn(STORES, 8, 1) / 8**0.5)
        self.b2 = nn.Parameter(torch.zeros(STORES, 1, 1))

    def forward(self, x):
        h = self.trunk(x).expand(STORES, -1, -1)
        h = torch.tanh(torch.baddbmm(self.b1, h, self.w1))
        return torch.baddbmm(self.b2, h, self.w2).squeeze(2).t()


model = (HeadsAtOnce() if "--fixed" in sys.argv else Heads()).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
weather = torch.randn(1024, 16, device="cuda")
sales = torch.rand(1024, STORES, device="cuda")
for step in range(320):
    rows = torch.randint(0, 1024, (64,), device="cuda")
    loss = nn.functional.l1_loss(model(weather[rows]), sales[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("error", loss.item())
