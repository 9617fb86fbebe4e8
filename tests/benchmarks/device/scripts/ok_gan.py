"""A GAN on rings: two models, two optimizers, nothing in the way."""

import torch
import torch.nn as nn

torch.manual_seed(3)
dev = "cuda"
G = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2)).to(dev)
D = nn.Sequential(
    nn.Linear(2, 128), nn.LeakyReLU(0.2), nn.Linear(128, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1)
).to(dev)
opt_g = torch.optim.Adam(G.parameters(), 1e-4, betas=(0.0, 0.9), fused=True)
opt_d = torch.optim.Adam(D.parameters(), 4e-4, betas=(0.0, 0.9), fused=True)
angle = torch.rand(4096, device=dev) * 6.2832
ring = torch.stack([angle.cos(), angle.sin()], 1)

for i in range(220):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        fake = G(torch.randn(64, 16, device=dev))
        real = ring[torch.randint(4096, (64,), device=dev)]
        d_loss = torch.relu(1 - D(real)).mean() + torch.relu(1 + D(fake.detach())).mean()
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        g_loss = -D(fake).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    if i % 100 == 99:
        print(i + 1, d_loss.item(), g_loss.item())
