"""Strength of alloys: a sweep over learning rate and dropout in one process, learning curves of each trial."""

import itertools
import sys

import torch
import torch.nn.functional as F
from torch import nn

SPACE = {"lr": [3e-4, 1e-3, 3e-3], "dropout": [0.0, 0.2]}
FIXED = {"width": 256, "blocks": 3, "batch_size": 128, "epochs": 12, "score_every": 1}


class Residual(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.inner = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 2 * width),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(2 * width, width),
        )

    def forward(self, x):
        return x + self.inner(x)


def resnet(n_in, width, blocks, dropout):
    return nn.Sequential(
        nn.Linear(n_in, width), *[Residual(width, dropout) for _ in range(blocks)], nn.Linear(width, 1)
    )


def alloys(n, elements, generator):
    share = torch.rand(n, elements, generator=generator).pow(3)
    share = share / share.sum(1, keepdim=True)
    strength = 4 * share[:, 0] - 3 * share[:, 1] * share[:, 2] * 9 + share[:, 3:].max(1).values
    return share, strength + 0.05 * torch.randn(n, generator=generator)


class Trial:
    def __init__(self, number, params, train, test):
        self.number, self.params, self.train_set, self.test_set = number, {**FIXED, **params}, train, test
        self.model = resnet(
            train[0].shape[1], self.params["width"], self.params["blocks"], self.params["dropout"]
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.params["lr"], fused=True)
        self.curves = {"train": [], "test": []}

    @torch.no_grad()
    def rmse(self, x, y):
        self.model.eval()
        squared = sum(
            F.mse_loss(self.model(a).squeeze(1), b, reduction="sum")
            for a, b in zip(x.split(512), y.split(512))
        )
        self.model.train()
        return (squared / len(y)).sqrt().item()

    def epoch(self):
        x, y = self.train_set
        for rows in torch.randperm(len(x)).split(self.params["batch_size"]):
            loss = F.huber_loss(self.model(x[rows]).squeeze(1), y[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def run(self):
        for epoch in range(1, self.params["epochs"] + 1):
            self.epoch()
            if epoch % self.params["score_every"] == 0:
                self.curves["train"].append(self.rmse(*self.train_set))
                self.curves["test"].append(self.rmse(*self.test_set))
        print(
            f"trial {self.number} {self.params['lr']} {self.params['dropout']}: {self.curves['test'][-1]:.4f}"
        )
        return self.curves["test"][-1]


def main():
    torch.manual_seed(50)
    if "--fixed" in sys.argv:
        FIXED["score_every"] = FIXED["epochs"]
    generator = torch.Generator().manual_seed(50)
    x, y = alloys(2560, 24, generator)
    train, test = (x[:2048], y[:2048]), (x[2048:], y[2048:])
    results = {}
    for number, values in enumerate(itertools.product(*SPACE.values())):
        results[values] = Trial(number, dict(zip(SPACE, values)), train, test).run()
    print("best", min(results, key=results.get))


if __name__ == "__main__":
    main()
