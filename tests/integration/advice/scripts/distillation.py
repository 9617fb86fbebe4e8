"""A small student learns from a large teacher, whose pass has no gradients and is needed in every step."""

import torch
import torch.nn.functional as F
from torch import nn

teacher = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
student = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
for step in range(250):
    x = torch.randn(256, 64)
    with torch.no_grad():
        scores = teacher(x)
    loss = F.kl_div(F.log_softmax(student(x), 1), F.softmax(scores, 1), reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
