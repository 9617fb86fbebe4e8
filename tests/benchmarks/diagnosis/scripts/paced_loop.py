"""Online learning from a stream, polling politely."""

import argparse
import time

import torch
from torch import nn


def stream(count):
    for _ in range(count):
        x = torch.randn(64, 50)
        yield x, x.sum(1, keepdim=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    pause = 0.0 if parser.parse_args().fixed else 0.008
    model = nn.Sequential(nn.Linear(50, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in stream(400):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if pause:
            time.sleep(pause)
    print(loss.item())


if __name__ == "__main__":
    main()
