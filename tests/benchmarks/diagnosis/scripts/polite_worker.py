"""Fraud scores; the loop yields to the web service on the same machine now and then."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
pause = 0.0 if parser.parse_args().fixed else 0.004

model = nn.Sequential(nn.Linear(200, 800), nn.ReLU(), nn.Linear(800, 800), nn.ReLU(), nn.Linear(800, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = TensorDataset(torch.randn(9600, 200), torch.randint(0, 2, (9600,)))
for epoch in range(3):
    for rows, fraud in DataLoader(data, batch_size=64, shuffle=True):
        loss = nn.functional.cross_entropy(model(rows), fraud)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pause:
            time.sleep(pause)
    print(epoch, loss.item())
