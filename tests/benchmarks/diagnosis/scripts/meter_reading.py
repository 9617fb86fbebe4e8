"""Smart-meter forecast in a loop that never runs faster than the meters report."""

import sys
import time

import torch
from torch import nn

model = nn.GRU(6, 48, batch_first=True)
head = nn.Linear(48, 1)
optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-3)
for tick in range(150):
    readings, load = torch.randn(32, 24, 6), torch.randn(32, 1)
    loss = nn.functional.mse_loss(head(model(readings)[0][:, -1]), load)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if "--fixed" not in sys.argv:
        time.sleep(0.02)
print(loss.item())
