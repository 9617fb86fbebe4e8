"""Insurance claims; memory was tight once, so every step cleans up behind itself."""

import argparse
import gc

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
fixed = parser.parse_args().fixed

history = [{"claim": i, "parts": [i % 7, i % 11]} for i in range(8000)]
model = nn.Sequential(nn.Linear(120, 300), nn.ReLU(), nn.Linear(300, 300), nn.ReLU(), nn.Linear(300, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
data = TensorDataset(torch.randn(3200, 120), torch.randn(3200, 1))
for epoch in range(2):
    for x, y in DataLoader(data, batch_size=64, shuffle=True):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not fixed:
            del x, y
            gc.collect()
print(loss.item(), len(history))
