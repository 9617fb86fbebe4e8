"""Two models, two optimizers, nothing that holds up the device."""

import torch
from torch import nn

device = "cuda"
generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16)).to(device)
critic = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(), nn.Linear(32, 1)).to(device)
g_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4)
d_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-4)
bce = nn.BCEWithLogitsLoss()
real = torch.randn(8, 16, device=device)
ones, zeros = torch.ones(8, 1, device=device), torch.zeros(8, 1, device=device)
for _step in range(30):
    fake = generator(torch.randn(8, 8, device=device))
    d_optimizer.zero_grad()
    (bce(critic(real), ones) + bce(critic(fake.detach()), zeros)).backward()
    d_optimizer.step()
    g_optimizer.zero_grad()
    bce(critic(fake), ones).backward()
    g_optimizer.step()
torch.cuda.synchronize()
