"""What people do with a post: opened, liked, shared, followed; gates over shared experts (MMoE), a loss for each task."""

import argparse
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

TASKS = ("open", "like", "share", "follow")
RARITY = {"open": 0.0, "like": -1.0, "share": -2.0, "follow": -2.5}


@dataclass
class FeedConfig:
    fields: tuple = (900, 1200, 40, 24, 7, 300, 60, 15)
    numbers: int = 12
    embedding: int = 16
    experts: int = 6
    expert_width: int = 128
    tower_width: int = 64
    weights: dict = field(default_factory=lambda: {"open": 1.0, "like": 1.0, "share": 0.5, "follow": 0.5})


def make_feed(config, rows, seed):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(size, size=rows) for size in config.fields], 1)
    numbers = rng.normal(size=(rows, config.numbers)).astype(np.float32)
    taste = [rng.normal(0, 0.7, (size, len(TASKS))) for size in config.fields]
    score = sum(table[codes[:, i]] for i, table in enumerate(taste)) + 0.3 * numbers[:, : len(TASKS)]
    score = score + np.array([RARITY[task] for task in TASKS])
    labels = rng.random(score.shape) < 1 / (1 + np.exp(-score))
    offsets = np.concatenate([[0], np.cumsum(config.fields)[:-1]])
    return torch.from_numpy(codes + offsets), torch.from_numpy(numbers), torch.from_numpy(labels).float()


class Experts(nn.Module):
    """All experts as one batched product for each of two layers."""

    def __init__(self, before, config):
        super().__init__()
        n, width = config.experts, config.expert_width
        self.first = nn.Parameter(torch.randn(n, before, width) * (2 / before) ** 0.5)
        self.second = nn.Parameter(torch.randn(n, width, width) * (2 / width) ** 0.5)
        self.biases = nn.Parameter(torch.zeros(2, n, 1, width))

    def forward(self, x):
        x = F.relu(torch.baddbmm(self.biases[0], x.expand(len(self.first), -1, -1), self.first))
        return F.relu(torch.baddbmm(self.biases[1], x, self.second))


class MMoE(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = len(config.fields) * config.embedding + config.numbers
        self.embedding = nn.Embedding(sum(config.fields), config.embedding)
        nn.init.normal_(self.embedding.weight, 0, 0.05)
        self.norm = nn.BatchNorm1d(width)
        self.experts = Experts(width, config)
        self.gates = nn.Linear(width, len(TASKS) * config.experts)
        self.towers = nn.ModuleDict(
            {
                task: nn.Sequential(
                    nn.Linear(config.expert_width, config.tower_width),
                    nn.ReLU(),
                    nn.Dropout(0.1),
                    nn.Linear(config.tower_width, 1),
                )
                for task in TASKS
            }
        )

    def forward(self, codes, numbers):
        x = self.norm(torch.cat([self.embedding(codes).flatten(1), numbers], 1))
        gates = self.gates(x).view(len(x), len(TASKS), -1).softmax(2)
        mixed = torch.einsum("btn,nbw->tbw", gates, self.experts(x))
        return {task: self.towers[task](part).squeeze(1) for task, part in zip(TASKS, mixed)}


class MultiTaskTrainer:
    def __init__(self, model, config, args):
        self.model, self.config, self.args = model, config, args
        self.optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, fused=True)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, 0.85)

    def task_losses(self, codes, numbers, labels):
        logits = self.model(codes, numbers)
        return {
            task: self.config.weights[task] * F.binary_cross_entropy_with_logits(logits[task], labels[:, n])
            for n, task in enumerate(TASKS)
        }

    def propagate(self, losses):
        if self.args.fixed:
            sum(losses.values()).backward()
            return
        for loss in losses.values():
            loss.backward(retain_graph=True)

    def fit_epoch(self, data):
        self.model.train()
        totals = torch.zeros(len(TASKS))
        batches = torch.randperm(len(data[0])).split(self.args.batch_size)
        for rows in batches:
            losses = self.task_losses(*(column[rows] for column in data))
            self.optimizer.zero_grad()
            self.propagate(losses)
            self.optimizer.step()
            totals += torch.stack([loss.detach() for loss in losses.values()])
        self.scheduler.step()
        return dict(zip(TASKS, (totals / len(batches)).tolist()))

    @torch.no_grad()
    def evaluate(self, data):
        self.model.eval()
        return {task: loss.item() for task, loss in self.task_losses(*data).items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=44_000)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--fixed", action="store_true", help="one backward pass for the sum of the losses")
    args = parser.parse_args()
    torch.manual_seed(12)
    config = FeedConfig()
    data = make_feed(config, args.rows, seed=12)
    cut = args.rows - 4000
    train, held_out = [column[:cut] for column in data], [column[cut:] for column in data]
    trainer = MultiTaskTrainer(MMoE(config), config, args)
    for epoch in range(args.epochs):
        losses = trainer.fit_epoch(train)
        shown = "  ".join(f"{task} {loss:.3f}" for task, loss in losses.items())
        print(f"epoch {epoch}: {shown}  held out {sum(trainer.evaluate(held_out).values()):.3f}")


if __name__ == "__main__":
    main()
