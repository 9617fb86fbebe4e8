"""Losses are collected on the GPU and written down every fifty steps."""

import logging

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("train")


class Meter:
    """A mean that stays on the device until it is asked for."""

    def __init__(self):
        self.total, self.count = torch.zeros((), device="cuda"), 0

    def add(self, value):
        self.total += value.detach()
        self.count += 1

    def read(self):
        mean = self.total.item() / self.count
        self.total.zero_()
        self.count = 0
        return mean


torch.manual_seed(2)
model = nn.Sequential(
    nn.Linear(48, 144), nn.Mish(), nn.Linear(144, 144), nn.Mish(), nn.Linear(144, 48)
).cuda()
optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
meter = Meter()
for step in range(1, 251):
    x = torch.randn(64, 48, device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.smooth_l1_loss(model(x), x.flip(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    meter.add(loss)
    if step % 50 == 0:
        log.info("step %d loss %.4f", step, meter.read())
