"""A toy detector: losses only on the cells that hold an object, picked with masks."""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


def pick(pred, target, mask):
    """Cells with objects, class by class."""
    total = pred.new_zeros(())
    for c in range(10):
        hit = mask[:, c]
        chosen = pred[:, c][hit]
        if chosen.numel() > 0:
            total = total + F.smooth_l1_loss(chosen, target[:, c][hit])
    return total / 10


def weigh(pred, target, mask):
    """The same without choosing: every cell, those without an object with weight zero."""
    error = F.smooth_l1_loss(pred, target, reduction="none") * mask.unsqueeze(-1)
    return (error.sum((0, 2)) / (4 * mask.sum(0).clamp(min=1))).mean()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fixed", action="store_true")
    box_loss = weigh if parser.parse_args().fixed else pick
    torch.manual_seed(2)
    trunk = nn.Sequential(
        nn.Linear(96, 160), nn.ReLU(), nn.Linear(160, 160), nn.ReLU(), nn.Linear(160, 40)
    ).cuda()
    optimizer = torch.optim.SGD(trunk.parameters(), lr=1e-3)
    for step in range(420):
        cells = torch.randn(64, 96, device="cuda")
        boxes = torch.rand(64, 10, 4, device="cuda")
        has = torch.rand(64, 10, device="cuda") > 0.7
        loss = box_loss(trunk(cells).view(64, 10, 4), boxes, has)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("box loss", loss.item())
