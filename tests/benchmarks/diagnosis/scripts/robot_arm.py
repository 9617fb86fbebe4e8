"""Angles of a robot arm from where its hand is; everything is written down, in every step."""

import json
import logging
import sys
import tempfile

import torch
from torch import nn

QUIET = "--fixed" in sys.argv
log = logging.getLogger("arm")
log.setLevel(logging.INFO)
handler = logging.FileHandler(tempfile.NamedTemporaryFile(suffix=".log", delete=False).name)
handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
log.addHandler(handler)
log.propagate = False


class Arm(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6 if i == 0 else 96, 96) for i in range(5)])
        self.angles = nn.Linear(96, 7)

    def forward(self, hand):
        for layer in self.layers:
            hand = torch.nn.functional.silu(layer(hand))
        return self.angles(hand)


torch.manual_seed(4)
arm = Arm()
adam = torch.optim.Adam(arm.parameters(), lr=1e-3, fused=True)
for step in range(1500):
    hand = torch.randn(256, 6)
    wanted = torch.sin(hand @ torch.ones(6, 7))
    loss = (arm(hand) - wanted).pow(2).mean()
    adam.zero_grad()
    loss.backward()
    adam.step()
    if not QUIET or step % 300 == 0:
        row = {"step": step, "loss": loss.item()}
        for name, weight in arm.named_parameters():
            row[name] = [round(v, 5) for v in weight.detach().flatten()[:200].tolist()]
        log.info(json.dumps(row))
print(loss.item())
