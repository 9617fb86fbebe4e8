"""Denoising small pictures, with a slow average of the weights made in one call."""

import torch
from torch import nn

torch.manual_seed(0)
steps_of_noise = torch.linspace(1e-4, 0.02, 200)
kept = torch.cumprod(1 - steps_of_noise, 0)


class Denoiser(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.enter = nn.Conv2d(2, width, 3, padding=1)
        self.blocks = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(4))
        self.leave = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x, t):
        x = self.enter(torch.cat([x, t.view(-1, 1, 1, 1).expand_as(x)], 1))
        for block in self.blocks:
            x = x + nn.functional.silu(block(x))
        return self.leave(x)


net = Denoiser()
average = [p.detach().clone() for p in net.parameters()]
optimizer = torch.optim.AdamW(net.parameters(), 2e-4, fused=True)
pictures = torch.rand(2048, 1, 24, 24)
for step in range(130):
    x = pictures[torch.randint(2048, (32,))]
    t = torch.randint(0, 200, (32,))
    noise = torch.randn_like(x)
    a = kept[t].view(-1, 1, 1, 1)
    loss = nn.functional.mse_loss(net(a.sqrt() * x + (1 - a).sqrt() * noise, t / 200), noise)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    torch._foreach_lerp_(average, [p.detach() for p in net.parameters()], 0.01)
print(loss.item())
