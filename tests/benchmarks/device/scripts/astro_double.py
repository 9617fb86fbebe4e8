"""Orbits of minor planets, in double precision because NumPy gives it."""

import sys

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(42)
elements = rng.normal(size=(128 * 40, 6))
positions = np.concatenate([np.sin(elements), np.cos(elements)], axis=1)
inputs, outputs = torch.from_numpy(elements), torch.from_numpy(positions)
dtype = torch.float32 if "--fixed" in sys.argv else torch.float64

torch.manual_seed(42)
torch.backends.cuda.matmul.allow_tf32 = True
model = nn.Sequential(nn.Linear(6, 768), nn.Tanh(), nn.Linear(768, 768), nn.Tanh(), nn.Linear(768, 12))
model = model.to("cuda", dtype)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
loader = DataLoader(
    TensorDataset(inputs.to(dtype), outputs.to(dtype)), batch_size=128, shuffle=True, pin_memory=True
)
for epoch in range(5):
    for a, b in loader:
        a, b = a.cuda(non_blocking=True), b.cuda(non_blocking=True)
        loss = nn.functional.mse_loss(model(a), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} error {loss.item():.5f}")
