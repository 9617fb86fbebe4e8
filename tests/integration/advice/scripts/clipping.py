"""A deep, narrow network with clipped gradients: many small parameters, so that clipping takes a while."""

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

model = nn.Sequential(*[part for _ in range(60) for part in (nn.Linear(16, 16), nn.Tanh())], nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(300):
    x = torch.randn(8, 16)
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
