"""A loop of one's own with Accelerate; its whole state is saved every 4 steps."""

from tests.frameworks.torchvision_operators import declare

declare()

import shutil
import sys
import tempfile

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

every = 200 if "--fixed" in sys.argv else 4
accelerator = Accelerator(cpu=True)
network = nn.Sequential(
    nn.Linear(256, 640),
    nn.GELU(),
    nn.Linear(640, 640),
    nn.GELU(),
    nn.Linear(640, 640),
    nn.GELU(),
    nn.Linear(640, 8),
)
optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, fused=True)
rows = TensorDataset(torch.randn(19200, 256), torch.randint(0, 8, (19200,)))
network, optimizer, loader = accelerator.prepare(
    network, optimizer, DataLoader(rows, batch_size=96, shuffle=True)
)
folder = tempfile.mkdtemp()
for number, (x, y) in enumerate(loader, start=1):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(network(x), y)
    accelerator.backward(loss)
    optimizer.step()
    if number % every == 0:
        accelerator.save_state(f"{folder}/state")
accelerator.print(loss.item())
shutil.rmtree(folder)
