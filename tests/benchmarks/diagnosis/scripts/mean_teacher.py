"""Semi-supervised student with a best-so-far copy of its weights."""

import argparse
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build():
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))


def train(fixed):
    student = build()
    loader = DataLoader(TensorDataset(torch.randn(9600, 64), torch.randint(0, 10, (9600,))), batch_size=96)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.02, momentum=0.9)
    snapshots, step = {}, 0
    for epoch in range(12):
        for x, y in loader:
            loss = nn.functional.cross_entropy(student(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if not fixed or step % 100 == 0:
                snapshots["model"] = copy.deepcopy(student)
                snapshots["optimizer"] = copy.deepcopy(optimizer.state_dict())
    print("steps", step, "loss", loss.item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    train(parser.parse_args().fixed)
