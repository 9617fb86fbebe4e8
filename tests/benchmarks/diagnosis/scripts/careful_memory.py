"""Caption ranking that collects its garbage every eighth step, to be on the safe side."""

import gc
import sys

import torch
from torch import nn

words = {i: {"text": f"word {i}", "seen": [i, i + 1]} for i in range(15000)}
encoder, scorer = nn.Linear(200, 400), nn.Linear(400, 1)
optimizer = torch.optim.Adam([*encoder.parameters(), *scorer.parameters()], lr=1e-3)
for step in range(400):
    caption = torch.randn(96, 200)
    loss = nn.functional.softplus(-scorer(torch.relu(encoder(caption)))).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if "--fixed" not in sys.argv and step % 8 == 0:
        gc.collect()
print(loss.item(), len(words))
