"""Prices of houses from twenty columns, four houses to a batch."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()
torch.manual_seed(11)
columns = torch.randn(12000, 20)
prices = columns @ torch.randn(20) + 0.1 * torch.randn(12000)
train, held = random_split(TensorDataset(columns, prices), [11000, 1000])
loader = DataLoader(train, batch_size=128 if args.fixed else 4, shuffle=True, drop_last=True)
model = nn.Sequential(
    nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)

for epoch in range(8 if args.fixed else 1):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.huber_loss(model(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        x, y = held[:]
        print(epoch, float((model(x).squeeze(1) - y).abs().mean()))
