"""Bandit policy that tells everything it does."""

import argparse
import logging
import tempfile

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
fixed = parser.parse_args().fixed

logging.basicConfig(
    filename=tempfile.mktemp(suffix=".log"), level=logging.INFO, format="%(asctime)s %(message)s"
)
logger = logging.getLogger("bandit")
policy = nn.Sequential(nn.Linear(30, 128), nn.Tanh(), nn.Linear(128, 8))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
for step in range(1500):
    state = torch.randn(64, 30)
    scores = policy(state)
    reward = torch.rand(64)
    loss = -(torch.log_softmax(scores, 1)[:, 0] * reward).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not fixed or step % 100 == 0:
        for arm in range(8):
            logger.info("step %d arm %d score %.4f", step, arm, scores[:, arm].mean())
        for name, parameter in policy.named_parameters():
            logger.info("step %d %s norm %.5f", step, name, parameter.norm())
print(loss.item())
