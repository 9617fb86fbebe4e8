"""Every step leaves a line in a journal: loss, learning rate, the mean of every weight."""

import json
import os
import sys
import tempfile

import torch
from torch import nn

EVERY = 50 if "--fixed" in sys.argv else 1
torch.manual_seed(44)
layers = []
for _ in range(7):
    layers += [nn.Linear(56, 56), nn.PReLU()]
model = nn.Sequential(*layers, nn.Linear(56, 3)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 100)
journal = tempfile.NamedTemporaryFile("w", suffix=".jsonl")


def write_line(step, loss):
    entry = {"step": step, "loss": loss.item(), "lr": optimizer.param_groups[0]["lr"]}
    for name, weight in model.named_parameters():
        entry[f"mean/{name}"] = weight.mean().item()
        entry[f"std/{name}"] = weight.std().item()
    journal.write(json.dumps(entry) + "\n")
    journal.flush()
    os.fsync(journal.fileno())


for step in range(350):
    x = torch.randn(80, 56, device="cuda")
    y = x[:, :3].argmax(1)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % EVERY == 0:
        write_line(step, loss)
print("journal of", os.path.getsize(journal.name), "bytes")
