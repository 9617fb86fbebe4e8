"""Convolutional classifier whose weights are followed with a histogram in every step."""

import argparse
import json
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EventWriter:
    def __init__(self):
        self.out = tempfile.TemporaryFile("w")

    def add_histogram(self, name, values, step):
        counts, edges = np.histogram(values, bins=64)
        self.out.write(
            json.dumps({"step": step, "tag": name, "counts": counts.tolist(), "edges": edges.tolist()})
        )
        self.out.write("\n")

    def flush(self):
        self.out.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    every = 100 if parser.parse_args().fixed else 1
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, stride=2), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(64 * 49, 32), nn.ReLU(), nn.Linear(32, 10),
    )  # fmt: skip
    loader = DataLoader(
        TensorDataset(torch.randn(1600, 3, 32, 32), torch.randint(0, 10, (1600,))), batch_size=32
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    writer, step = EventWriter(), 0
    for epoch in range(4):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                for name, parameter in model.named_parameters():
                    writer.add_histogram(name, parameter.detach().numpy(), step)
                writer.flush()
            step += 1
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
