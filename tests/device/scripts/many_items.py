"""Twenty reads of device values per step."""

import torch
from torch import nn

model = nn.Linear(32, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(16, 32, device="cuda")
for _step in range(40):
    total = 0.0
    for _part in range(20):
        total += model(x).mean().item()
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
