"""Which part of the step is slow? Every part is timed, and for that the GPU is waited for."""

import sys
import time
from contextlib import contextmanager

import torch
from torch import nn

timed = "--fixed" not in sys.argv
times = {}


@contextmanager
def timer(name):
    if not timed:
        yield
        return
    torch.cuda.synchronize()
    start = time.perf_counter()
    yield
    torch.cuda.synchronize()
    times[name] = times.get(name, 0.0) + time.perf_counter() - start


class Forecaster(nn.Module):
    def __init__(self, horizon=12):
        super().__init__()
        self.season = nn.ModuleList(nn.Linear(horizon, 32) for _ in range(8))
        self.mix = nn.Sequential(nn.Linear(256, 128), nn.GELU(), nn.Linear(128, horizon))

    def forward(self, x):
        return self.mix(torch.cat([torch.relu(layer(x)) for layer in self.season], dim=-1))


torch.manual_seed(0)
model = Forecaster().to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
history = torch.randn(2000, 12, device="cuda")
for step in range(450):
    with timer("batch"):
        at = torch.randint(0, 1999, (40,), device="cuda")
        x, y = history[at], history[at + 1]
    with timer("forward"):
        loss = (model(x) - y).abs().mean()
    with timer("backward"):
        optimizer.zero_grad()
        loss.backward()
    with timer("update"):
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
print({name: f"{seconds:.2f} s" for name, seconds in times.items()})
