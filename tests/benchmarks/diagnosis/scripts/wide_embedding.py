"""News recommender: a large embedding table, a small network on top."""

import argparse

import torch
from torch import nn


class Recommender(nn.Module):
    def __init__(self, articles):
        super().__init__()
        self.table = nn.Embedding(articles, 48)
        self.score = nn.Sequential(nn.Linear(96, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, read, offered):
        return self.score(torch.cat([self.table(read).mean(1), self.table(offered)], dim=1)).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    fixed = parser.parse_args().fixed
    model = Recommender(60_000)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=False, fused=fixed)
    for step in range(150):
        read, offered = torch.randint(0, 60_000, (128, 10)), torch.randint(0, 60_000, (128,))
        clicked = torch.randint(0, 2, (128,)).float()
        loss = nn.functional.binary_cross_entropy_with_logits(model(read, offered), clicked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
