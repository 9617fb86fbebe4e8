"""Which shoe left the print: embeddings learned with a batch-hard triplet loss."""

import argparse
from collections import defaultdict, deque

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class SmoothedValue:
    def __init__(self, window=20):
        self.values = deque(maxlen=window)

    def update(self, value):
        self.values.append(value)

    @property
    def avg(self):
        return float(np.mean([float(v) for v in self.values]))


class MetricLogger:
    """Keeps running figures of the batch and says them now and then."""

    def __init__(self, score_freq, print_freq):
        self.meters = defaultdict(SmoothedValue)
        self.score_freq, self.print_freq = score_freq, print_freq
        self.seen = 0

    def update(self, embeddings, labels, **scalars):
        for name, value in scalars.items():
            self.meters[name].update(value)
        if self.seen % self.score_freq == 0:
            self.meters["mAP"].update(mean_average_precision(embeddings, labels))
        self.seen += 1
        if self.seen % self.print_freq == 0:
            print("  ".join(f"{name} {meter.avg:.4f}" for name, meter in self.meters.items()))


def mean_average_precision(embeddings, labels):
    """Every print of the batch is a query against all the others."""
    vectors = embeddings.detach().cpu().numpy()
    names = labels.cpu().numpy()
    similarity = vectors @ vectors.T
    scores = []
    for query in range(len(names)):
        found, precision = 0, 0.0
        ranked = [other for other in np.argsort(-similarity[query]) if other != query]
        for rank, other in enumerate(ranked, start=1):
            if names[other] == names[query]:
                found += 1
                precision += found / rank
        scores.append(precision / max(found, 1))
    return float(np.mean(scores))


class PKBatches:
    """P shoes, K prints of each."""

    def __init__(self, prints, shoes, p, k, generator):
        self.prints, self.p, self.k, self.generator = prints, p, k, generator
        self.shoes = shoes

    def draw(self):
        labels = torch.randperm(self.shoes, generator=self.generator)[: self.p].repeat_interleave(self.k)
        noise = torch.randn(self.p * self.k, *self.prints.shape[1:], generator=self.generator)
        return self.prints[labels] + 0.7 * noise, labels


class Embedder(nn.Module):
    def __init__(self, channels=8, dim=64):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
        )
        self.fc = nn.Linear(32 * channels, dim)

    def forward(self, x):
        return F.normalize(self.fc(self.conv(x)), dim=1)


def batch_hard_triplet(embeddings, labels, margin):
    distance = torch.cdist(embeddings, embeddings)
    same = labels[:, None] == labels[None]
    hardest_positive = distance.masked_fill(~same, 0).amax(1)
    hardest_negative = distance.masked_fill(same, 9.0).amin(1)
    return F.relu(hardest_positive - hardest_negative + margin).mean()


def train_one_epoch(model, sampler, optimizer, logger, args):
    model.train()
    for _ in range(args.iters):
        images, labels = sampler.draw()
        embeddings = model(images)
        loss = batch_hard_triplet(embeddings, labels, args.margin)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logger.update(embeddings, labels, loss=loss.detach())


def main(args):
    generator = torch.Generator().manual_seed(31)
    torch.manual_seed(31)
    prints = torch.randn(args.shoes, 1, 20, 20, generator=generator)
    sampler = PKBatches(prints, args.shoes, args.p, args.k, generator)
    model = Embedder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-3, fused=True)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [4, 6])
    logger = MetricLogger(args.score_freq, print_freq=50)
    for _ in range(args.epochs):
        train_one_epoch(model, sampler, optimizer, logger, args)
        scheduler.step()


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--shoes", type=int, default=400)
    cli.add_argument("-p", type=int, default=32)
    cli.add_argument("-k", type=int, default=4)
    cli.add_argument("--iters", type=int, default=100)
    cli.add_argument("--epochs", type=int, default=6)
    cli.add_argument("--margin", type=float, default=0.3)
    cli.add_argument("--lr", type=float, default=1e-3)
    cli.add_argument("--score-freq", type=int, default=1)
    cli.add_argument("--fixed", action="store_true", help="score every 100th batch")
    options = cli.parse_args()
    if options.fixed:
        options.score_freq = 100
    main(options)
