"""Spam filter on short messages, eight at a time."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
fixed = parser.parse_args().fixed

messages, spam = torch.randint(0, 4000, (8000, 20)), torch.randint(0, 2, (8000,))
loader = DataLoader(TensorDataset(messages, spam), batch_size=128 if fixed else 8, shuffle=True)
embed, head = nn.EmbeddingBag(4000, 48), nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.SGD([*embed.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
for epoch in range(10 if fixed else 3):
    for words, label in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(head(embed(words)), label)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
