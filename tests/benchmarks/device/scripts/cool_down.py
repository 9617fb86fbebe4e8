"""A desktop card under the desk: the loop pauses after each step so that the fan stays quiet."""

import sys
import time

import torch
from torch import nn

PAUSE = 0.0 if "--fixed" in sys.argv else 0.012


def train(model, batches, pause):
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    for x in batches:
        optimizer.zero_grad()
        out = model(x)
        loss = (out - x).abs().mean()
        loss.backward()
        optimizer.step()
        if pause:
            torch.cuda.synchronize()
            time.sleep(pause)
    return loss


def batches(n):
    torch.manual_seed(1)
    for _ in range(n):
        yield torch.randn(64, 36, device="cuda")


autoencoder = nn.Sequential(
    nn.Linear(36, 72), nn.ReLU(), nn.Linear(72, 9), nn.ReLU(), nn.Linear(9, 36)
).cuda()
print(train(autoencoder, batches(260), PAUSE).item())
