"""Gene-expression autoencoder that keeps its last two states on disk, every other step."""

import argparse
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
every = 100 if parser.parse_args().fixed else 2

model = nn.Sequential(nn.Linear(500, 300), nn.ReLU(), nn.Linear(300, 60), nn.ReLU(), nn.Linear(60, 500))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
data = TensorDataset(torch.rand(9600, 500))
folder, step = tempfile.mkdtemp(), 0
for epoch in range(4):
    for (x,) in DataLoader(data, batch_size=64, shuffle=True):
        loss = nn.functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % every == 0:
            target = os.path.join(folder, f"state{step // every % 2}.pt")
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, target)
    print(epoch, loss.item())
