"""Two views through one encoder, one loss; nothing to be had."""

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(
    nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 256)
)
optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-3, fused=True)
for step in range(150):
    clean = torch.randn(384, 128)
    a = encoder(clean + 0.1 * torch.randn_like(clean))
    b = encoder(clean + 0.1 * torch.randn_like(clean))
    similarity = nn.functional.normalize(a, dim=1) @ nn.functional.normalize(b, dim=1).T
    loss = nn.functional.cross_entropy(similarity / 0.07, torch.arange(384))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        print(step, round(loss.item(), 4))
