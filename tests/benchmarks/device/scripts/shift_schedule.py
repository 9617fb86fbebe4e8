"""Demand per shift: many short epochs, and workers that first have to open the database."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)


def connect(worker_id):
    time.sleep(0.12)


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(24, 96), nn.Linear(96, 96), nn.Linear(96, 1)

    def forward(self, x):
        return self.c(torch.relu(self.b(torch.relu(self.a(x))))).squeeze(-1)


features = torch.randn(14 * 32, 24)
data = TensorDataset(features, features.sum(1))
loader = DataLoader(
    data,
    batch_size=32,
    shuffle=True,
    num_workers=2,
    worker_init_fn=connect,
    persistent_workers="--fixed" in sys.argv,
)
net = Regressor().to("cuda:0")
optim = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(18):
    net.train()
    for x, y in loader:
        pred = net(x.to("cuda:0"))
        loss = (pred - y.to("cuda:0")).pow(2).mean()
        optim.zero_grad()
        loss.backward()
        optim.step()
    if epoch % 6 == 5:
        print("epoch", epoch, "mse", float(loss))
