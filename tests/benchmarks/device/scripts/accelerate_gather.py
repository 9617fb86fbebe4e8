"""An Accelerate loop that gathers its losses and predictions for the log at every step."""

import sys

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EVERY = 60 if "--fixed" in sys.argv else 1
accelerator = Accelerator(
    mixed_precision="bf16", dataloader_config=DataLoaderConfiguration(non_blocking=True)
)
torch.manual_seed(0)
x = torch.randn(20 * 320, 32)
loader = DataLoader(TensorDataset(x, (x.sum(1) > 0).long()), batch_size=20, shuffle=True, pin_memory=True)
model = nn.Sequential(nn.Linear(32, 160), nn.ReLU(), nn.Linear(160, 160), nn.ReLU(), nn.Linear(160, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
losses, right, rows = [], 0, 0
for step, (batch, labels) in enumerate(loader):
    logits = model(batch)
    loss = nn.functional.cross_entropy(logits, labels)
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    if step % EVERY == 0:
        losses.append(accelerator.gather(loss).item())
        guesses = accelerator.gather_for_metrics(logits.argmax(1)).tolist()
        truth = accelerator.gather_for_metrics(labels).tolist()
        right += sum(g == t for g, t in zip(guesses, truth))
        rows += len(truth)
        by_class = {c: sum(g == c for g in guesses) for c in set(truth)}
        accelerator.print(f"{step} {sum(losses) / len(losses):.4f} {right / rows:.3f} {by_class}")
