"""Active learning: the pool is scored with dropout on, the most uncertain are labelled, and training goes on."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Pool:
    def __init__(self, x, y, initial):
        self.x, self.y = x, y
        self.labelled = torch.zeros(len(x), dtype=torch.bool)
        self.labelled[torch.randperm(len(x))[:initial]] = True

    def unlabelled(self):
        return (~self.labelled).nonzero().squeeze(1)

    def training_rows(self):
        return self.labelled.nonzero().squeeze(1)

    def label(self, rows):
        self.labelled[rows] = True


class ConvNet(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(2 * width * 16, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(self.drop(x.flatten(1)))


@torch.no_grad()
def disagreement(model, x, draws):
    """BALD: entropy of the mean less the mean entropy."""
    model.train()
    scores = []
    for part in x.split(500):
        p = torch.stack([model(part).softmax(1) for _ in range(draws)])
        mean = p.mean(0)
        scores.append(-(mean * mean.log()).sum(1) + (p * p.log()).sum(2).mean(0))
    return torch.cat(scores)


class ActiveLearner:
    def __init__(self, pool, args):
        self.pool, self.args = pool, args
        self.model = ConvNet(args.width, args.classes)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=args.lr, fused=True)

    def fit_round(self):
        rows = self.pool.training_rows()
        for _ in range(self.args.updates):
            picked = rows[torch.randint(len(rows), (self.args.batch_size,))]
            loss = F.cross_entropy(self.model(self.pool.x[picked]), self.pool.y[picked])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()

    def query(self):
        rows = self.pool.unlabelled()
        candidates = rows[torch.randperm(len(rows))[: self.args.candidates]]
        scores = disagreement(self.model, self.pool.x[candidates], self.args.draws)
        self.pool.label(candidates[scores.topk(self.args.queries).indices])

    def run(self):
        for number in range(self.args.rounds):
            loss = self.fit_round()
            self.query()
            print(f"round {number}: {int(self.pool.labelled.sum())} labelled, loss {loss:.4f}")


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--rounds", type=int, default=12)
    cli.add_argument("--updates", type=int, default=40)
    cli.add_argument("--queries", type=int, default=64)
    cli.add_argument("--candidates", type=int, default=800)
    cli.add_argument("--draws", type=int, default=5)
    cli.add_argument("--batch-size", type=int, default=128)
    cli.add_argument("--width", type=int, default=16)
    cli.add_argument("--classes", type=int, default=8)
    cli.add_argument("--lr", type=float, default=1e-3)
    arguments = cli.parse_args()
    torch.manual_seed(19)
    images = torch.randn(6000, 1, 16, 16)
    labels = images[:, 0, :2, :4].flatten(1).argmax(1)
    ActiveLearner(Pool(images, labels, 256), arguments).run()
