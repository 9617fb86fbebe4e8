"""An Accelerate loop with accumulation that keeps the GPU busy."""

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(
    mixed_precision="bf16",
    gradient_accumulation_steps=2,
    dataloader_config=DataLoaderConfiguration(non_blocking=True),
)
torch.manual_seed(0)
x = torch.randn(16 * 220, 40)
loader = DataLoader(TensorDataset(x, x.mean(1, keepdim=True)), batch_size=16, pin_memory=True)
model = nn.Sequential(nn.Linear(40, 120), nn.ReLU(), nn.Linear(120, 120), nn.ReLU(), nn.Linear(120, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
total = 0.0
for inputs, targets in loader:
    with accelerator.accumulate(model):
        loss = nn.functional.mse_loss(model(inputs), targets)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    total = total + loss.detach()
accelerator.print("mean loss", (total / len(loader)).item())
