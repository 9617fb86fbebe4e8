"""Reads the loss every step, but a step is so long on the GPU that it does not matter."""

import torch
from torch import nn

torch.manual_seed(14)
model = nn.Sequential(
    nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 128)
).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
waves = torch.randn(1024, 128, device="cuda")
best, patience = float("inf"), 0
for step in range(85):
    batch = waves[(step % 8) * 128 : (step % 8 + 1) * 128]
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(model(batch), batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    value = loss.item()
    best, patience = (value, 0) if value < best else (best, patience + 1)
    if patience > 100:
        break
print("best", best)
