"""Two views of each sample, pulled together; all others pushed apart."""

import torch
import torch.nn.functional as F
from torch import nn

encoder = nn.Sequential(
    nn.Linear(400, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 64)
)
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3, fused=True)
data = torch.randn(5000, 400)


def views(rows):
    plain = data[rows]
    return torch.cat([plain + 0.1 * torch.randn_like(plain), plain * (torch.rand_like(plain) > 0.2)])


def contrast(z):
    z = F.normalize(z, dim=1)
    likeness = z @ z.T / 0.2
    likeness.fill_diagonal_(-1e9)
    half = len(z) // 2
    partner = torch.cat([torch.arange(half) + half, torch.arange(half)])
    return F.cross_entropy(likeness, partner)


for step in range(180):
    loss = contrast(encoder(views(torch.randint(0, 5000, (96,)))))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 60 == 0:
        print(step, loss.item())
