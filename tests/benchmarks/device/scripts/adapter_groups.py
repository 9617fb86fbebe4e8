"""Many small adapters, one optimizer that walks through them parameter by parameter."""

import sys

import torch
from torch import nn

torch.manual_seed(23)


class Adapter(nn.Module):
    def __init__(self, d=32, r=4):
        super().__init__()
        self.down, self.up = nn.Linear(d, r), nn.Linear(r, d)
        self.gate, self.scale = nn.Parameter(torch.zeros(d)), nn.Parameter(torch.ones(d))

    def forward(self, x):
        return x + self.gate * self.up(self.down(x * self.scale))


experts = nn.ModuleList(Adapter() for _ in range(40)).cuda()
head = nn.Linear(32, 5).cuda()
parameters = [*experts.parameters(), *head.parameters()]
how = {"fused": True} if "--fixed" in sys.argv else {"foreach": False}
optimizer = torch.optim.AdamW(parameters, lr=1e-3, **how)
for p in parameters:
    p.grad = torch.zeros_like(p)

x = torch.randn(128, 32, device="cuda")
y = torch.randint(5, (128,), device="cuda")
for step in range(140):
    chosen = experts[step % 40]
    loss = nn.functional.cross_entropy(head(chosen(x)), y)
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
    if step % 70 == 0:
        print("step", step, "loss", loss.item())
