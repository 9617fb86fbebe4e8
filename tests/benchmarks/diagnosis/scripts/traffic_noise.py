"""Noise maps; every step leaves its rows in a table on disk, synced."""

import csv
import os
import sys
import tempfile

import torch
from torch import nn

fixed = "--fixed" in sys.argv
net = nn.Sequential(nn.Linear(90, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 5))
opt = torch.optim.SGD(net.parameters(), lr=0.02)
streets, level = torch.randn(8000, 90), torch.randint(0, 5, (8000,))

with open(os.path.join(tempfile.mkdtemp(), "rows.csv"), "w", newline="") as out:
    table = csv.writer(out)
    for n in range(350):
        pick = torch.randint(0, 8000, (64,))
        scores = net(streets[pick])
        loss = nn.functional.cross_entropy(scores, level[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if not fixed or n % 100 == 0:
            for row, guess in zip(pick.tolist(), scores.softmax(1).tolist()):
                table.writerow([n, row, *(f"{value:.4f}" for value in guess)])
            out.flush()
            os.fsync(out.fileno())
print(loss.item())
