"""Glacier model that must not lose a step: saved and synced every fifth."""

import os
import sys
import tempfile

import torch
from torch import nn

every = 120 if "--fixed" in sys.argv else 5
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 256))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
path = os.path.join(tempfile.mkdtemp(), "glacier.pt")


def keep(step):
    with open(path + ".tmp", "wb") as out:
        torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, out)
        out.flush()
        os.fsync(out.fileno())
    os.replace(path + ".tmp", path)


for step in range(1, 421):
    x = torch.randn(48, 256)
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % every == 0:
        keep(step)
print(loss.item())
