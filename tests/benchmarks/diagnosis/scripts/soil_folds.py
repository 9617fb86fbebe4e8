"""Carbon in soil from spectra: five-fold cross-validation of a small network, a loader for each fold."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset


def spectra(n, bands, generator):
    x = torch.randn(n, bands, generator=generator).cumsum(1) / bands**0.5
    y = x[:, 20] - 0.5 * x[:, 90] ** 2 + 0.1 * torch.randn(n, generator=generator)
    return TensorDataset(x, y)


def folds(n, k, generator):
    parts = torch.randperm(n, generator=generator).chunk(k)
    for i in range(k):
        yield i, torch.cat([part for j, part in enumerate(parts) if j != i]).tolist(), parts[i].tolist()


def build(bands, width):
    return nn.Sequential(
        nn.Unflatten(1, (1, bands)),
        nn.Conv1d(1, 8, 9, stride=2, padding=4),
        nn.BatchNorm1d(8),
        nn.ELU(),
        nn.Flatten(),
        nn.Linear(8 * bands // 2, width),
        nn.ELU(),
        nn.Linear(width, 1),
        nn.Flatten(0),
    )


def train_epoch(model, optimizer, dataset, rows, args):
    model.train()
    loader = DataLoader(Subset(dataset, rows), args.batch_size, shuffle=True, num_workers=args.workers)
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def r_squared(model, dataset, rows):
    model.eval()
    x, y = dataset[rows]
    return 1 - ((model(x) - y) ** 2).sum().item() / ((y - y.mean()) ** 2).sum().item()


def cross_validate(args):
    generator = torch.Generator().manual_seed(args.seed)
    dataset = spectra(args.samples, args.bands, generator)
    scores = []
    for fold, train_rows, test_rows in folds(len(dataset), args.folds, generator):
        model = build(args.bands, args.width)
        optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01, fused=True)
        for _ in range(args.epochs):
            train_epoch(model, optimizer, dataset, train_rows, args)
        scores.append(r_squared(model, dataset, test_rows))
        print(f"fold {fold}: R² {scores[-1]:.3f}")
    print(f"mean {sum(scores) / len(scores):.3f}")


if __name__ == "__main__":
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("--samples", type=int, default=640)
    cli.add_argument("--bands", type=int, default=200)
    cli.add_argument("--width", type=int, default=256)
    cli.add_argument("--folds", type=int, default=5)
    cli.add_argument("--epochs", type=int, default=12)
    cli.add_argument("--batch-size", type=int, default=32)
    cli.add_argument("--workers", type=int, default=4)
    cli.add_argument("--lr", type=float, default=1e-3)
    cli.add_argument("--seed", type=int, default=14)
    cli.add_argument("--fixed", action="store_true", help="no workers: the data are in memory")
    options = cli.parse_args()
    if options.fixed:
        options.workers = 0
    torch.manual_seed(options.seed)
    cross_validate(options)
