"""The same large layers with and without mixed precision: `amp.py fp32`, `amp.py fp16`."""

import sys

import torch
from torch import nn

mixed = sys.argv[1] == "fp16"
model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cuda", enabled=mixed)
x = torch.randn(512, 512, device="cuda")
for _step in range(12):
    with torch.autocast("cuda", dtype=torch.float16, enabled=mixed):
        loss = model(x).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
torch.cuda.synchronize()
print("scale", scaler.get_scale())
