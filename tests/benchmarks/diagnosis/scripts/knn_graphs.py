"""Graph network whose neighbourhood graph is rebuilt in every step."""

import argparse

import numpy as np
import torch
from torch import nn


def build_adjacency(points, k):
    n = len(points)
    adjacency = np.zeros((n, n), dtype=np.float32)
    for i in range(n):
        distance = ((points - points[i]) ** 2).sum(axis=1)
        for j in np.argsort(distance)[1 : k + 1]:
            adjacency[i, j] = 1.0 / k
    return adjacency


class GraphNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 64), nn.Linear(64, 3)

    def forward(self, x, adjacency):
        return self.second(torch.relu(adjacency @ self.first(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    fixed = parser.parse_args().fixed
    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 3)).astype(np.float32)
    features = torch.randn(400, 16)
    labels = torch.randint(0, 3, (400,))
    model = GraphNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    adjacency = torch.from_numpy(build_adjacency(points, 8))
    for step in range(250):
        if not fixed:
            adjacency = torch.from_numpy(build_adjacency(points, 8))
        loss = nn.functional.cross_entropy(model(features, adjacency), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
