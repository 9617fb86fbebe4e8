"""Self-supervised features; every batch's features go into a bank in host memory."""

import sys

import torch
from torch import nn
import torch.nn.functional as F

ON_DEVICE = "--fixed" in sys.argv
torch.manual_seed(6)
SIZE, DIM, BATCH = 4096, 8192, 128


class Projector(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        self.project = nn.Linear(256, DIM)

    def forward(self, x):
        return F.normalize(self.project(self.trunk(x)), dim=1)


bank = torch.zeros(SIZE, DIM, device="cuda" if ON_DEVICE else "cpu")
model = Projector().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
position = 0
for step in range(400):
    view = torch.randn(BATCH, 64, device="cuda")
    first = model(view + 0.1 * torch.randn_like(view))
    second = model(view + 0.1 * torch.randn_like(view))
    loss = -(first * second.detach()).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    features = second.detach()
    bank[position : position + BATCH] = features if ON_DEVICE else features.cpu()
    position = (position + BATCH) % SIZE
print("bank", tuple(bank.shape), "loss", loss.item())
