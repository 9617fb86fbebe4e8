"""A small network learns from a large one that is not trained."""

import torch
import torch.nn.functional as F
from torch import nn

large = nn.Sequential(nn.Linear(200, 600), nn.ReLU(), nn.Linear(600, 10)).eval()
small = nn.Sequential(nn.Linear(200, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 10))
optimizer = torch.optim.SGD(small.parameters(), lr=0.05, momentum=0.9)
inputs = torch.randn(12800, 200)
for epoch in range(3):
    for rows in torch.randperm(12800).split(128):
        x = inputs[rows]
        with torch.no_grad():
            scores = large(x)
        loss = F.kl_div(F.log_softmax(small(x), 1), F.softmax(scores, 1), reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, float(loss))
