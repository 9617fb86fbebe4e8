"""Card fraud, four rows at a time because that is what the tutorial did. No DataLoader."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()
batch = 64 if args.fixed else args.batch

torch.manual_seed(0)
X = torch.randn(16_000, 30).to("cuda")
Y = (X[:, :5].sum(1, keepdim=True) > 0).float()
net = nn.Sequential(
    nn.Linear(30, 64),
    nn.BatchNorm1d(64),
    nn.ReLU(),
    nn.Linear(64, 64),
    nn.BatchNorm1d(64),
    nn.ReLU(),
    nn.Linear(64, 32),
    nn.BatchNorm1d(32),
    nn.ReLU(),
    nn.Linear(32, 1),
).to("cuda")
lossfn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
rows, steps = 0, 2200 if batch == 4 else 800
for step in range(steps):
    lo = (step * batch) % (len(X) - batch)
    x, y = X[lo : lo + batch], Y[lo : lo + batch]
    optimizer.zero_grad()
    loss = lossfn(net(x), y)
    loss.backward()
    optimizer.step()
    rows += batch
print(rows, "rows, loss", loss.item())
