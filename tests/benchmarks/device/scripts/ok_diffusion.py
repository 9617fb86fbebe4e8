"""Denoising with an average of the weights, all of it on the GPU."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda")
STEPS = 230


class Denoiser(nn.Module):
    def __init__(self, c=48):
        super().__init__()
        self.noise_level = nn.Linear(1, c)
        self.inp = nn.Conv2d(1, c, 3, padding=1)
        self.out = nn.Conv2d(c, 1, 3, padding=1)

    def forward(self, x, sigma):
        h = self.inp(x) + self.noise_level(sigma)[:, :, None, None]
        return self.out(nn.functional.silu(h))


net = Denoiser().to(device)
average = copy.deepcopy(net).requires_grad_(False)
following, followed = list(average.parameters()), list(net.parameters())
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
digits = torch.rand(512, 1, 28, 28, device=device)
for step in range(STEPS):
    clean = digits[torch.randint(512, (32,), device=device)]
    sigma = torch.rand(32, 1, device=device)
    noise = torch.randn_like(clean)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = (net(clean + sigma[:, :, None, None] * noise, sigma) - noise).square().mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        torch._foreach_lerp_(following, followed, 0.0005)
torch.save(average.state_dict(), "/dev/null")
print("done", loss.item())
