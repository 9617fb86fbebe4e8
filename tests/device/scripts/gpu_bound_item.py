"""A small classifier that reads its loss every step."""

import torch
from torch import nn

device = "cuda"
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.randn(16, 32, device=device)
y = torch.randint(0, 4, (16,), device=device)

losses = []
for _step in range(30):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
