"""Five models side by side in one loop, each with its own optimizer; all five are wanted."""

import torch
from torch import nn

torch.manual_seed(0)
members = [
    nn.Sequential(nn.Linear(64, 700), nn.ReLU(), nn.Linear(700, 700), nn.ReLU(), nn.Linear(700, 8))
    for _ in range(5)
]
optimizers = [torch.optim.AdamW(m.parameters(), lr=1e-3, fused=True) for m in members]
x_all = torch.randn(8000, 64)
y_all = torch.randint(8, (8000,))
for epoch in range(2):
    order = torch.randperm(8000)
    for rows in order.split(160):
        losses = []
        for member, optimizer in zip(members, optimizers):
            loss = nn.functional.cross_entropy(member(x_all[rows]), y_all[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    print(epoch, torch.stack(losses).mean().item())
