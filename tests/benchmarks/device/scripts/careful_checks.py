"""A careful person's loop: is anything not finite? Checked on every tensor, every step."""

import sys
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, d=48, depth=6):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(d, d) for _ in range(depth)])
        self.norms = nn.ModuleList([nn.LayerNorm(d) for _ in range(depth)])

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            h = layer(norm(x))
            if CHECK and not torch.isfinite(h).all():
                raise FloatingPointError("activations")
            x = x + nn.functional.gelu(h)
        return x


CHECK = len(sys.argv) < 2 or sys.argv[1] != "--fixed"
torch.manual_seed(13)
enc = Encoder().cuda()
dec = nn.Linear(48, 48).cuda()
params = [*enc.parameters(), *dec.parameters()]
opt = torch.optim.Adam(params, lr=3e-4)
for step in range(480):
    clean = torch.randn(32, 48, device="cuda")
    noisy = clean + 0.3 * torch.randn_like(clean)
    loss = nn.functional.mse_loss(dec(enc(noisy)), clean)
    if CHECK and torch.isnan(loss):
        raise FloatingPointError("loss")
    opt.zero_grad()
    loss.backward()
    if CHECK:
        for p in params:
            if not bool(torch.isfinite(p.grad).all()):
                raise FloatingPointError("gradients")
    opt.step()
    if step % 100 == 99:
        print("step", step + 1, "loss", loss.item())
