"""Saves model and optimizer every few steps, in case the night job is killed."""

import os
import sys
import tempfile

import torch
from torch import nn

SAVE_EVERY = 100 if "--fixed" in sys.argv else 4
torch.manual_seed(2)
model = nn.Sequential(
    nn.Linear(64, 512),
    nn.ReLU(),
    nn.Linear(512, 512),
    nn.ReLU(),
    nn.Linear(512, 512),
    nn.ReLU(),
    nn.Linear(512, 16),
)
model.cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler_mean, scaler_std = torch.zeros(64, device="cuda"), torch.ones(64, device="cuda")


def save(path, step):
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, path + ".tmp")
    with open(path + ".tmp", "rb") as written:
        os.fsync(written.fileno())
    os.replace(path + ".tmp", path)


with tempfile.TemporaryDirectory() as folder:
    for step in range(1, 401):
        x = (torch.randn(256, 64, device="cuda") - scaler_mean) / scaler_std
        with torch.autocast("cuda", dtype=torch.bfloat16):
            out = model(x)
            loss = nn.functional.mse_loss(out, x[:, :16])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % SAVE_EVERY == 0:
            save(os.path.join(folder, "last.pt"), step)
    print("saved", os.listdir(folder), loss.item())
