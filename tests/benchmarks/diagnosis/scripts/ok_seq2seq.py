"""Electricity demand: an LSTM reads a fortnight, another writes the next days, at first from the true values."""

import argparse
import random

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.rnn = nn.LSTM(features, hidden, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[1]


class Decoder(nn.Module):
    """With teacher forcing the whole sequence goes in at once; without it a day has to wait for the one before."""

    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.LSTM(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, first, state, teacher=None, steps=0):
        if teacher is not None:
            hidden, _ = self.rnn(torch.cat([first, teacher[:, :-1]], dim=1), state)
            return self.out(hidden)
        written, value = [], first
        for _ in range(steps):
            hidden, state = self.rnn(value, state)
            value = self.out(hidden)
            written.append(value)
        return torch.cat(written, dim=1)


class Forecaster(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.encoder, self.decoder = Encoder(1, hidden), Decoder(hidden)

    def forward(self, past, future, forced):
        state = self.encoder(past)
        return self.decoder(past[:, -1:], state, future if forced else None, future.shape[1])


def series(n, length, generator):
    t = torch.arange(length) / 24 * 6.283
    level = torch.rand(n, 1, generator=generator)
    curve = level + (t + 6 * torch.rand(n, 1, generator=generator)).sin()
    return (curve + 0.1 * torch.randn(n, length, generator=generator)).unsqueeze(-1)


@torch.no_grad()
def evaluate(model, data, past):
    model.eval()
    error = (model(data[:, :past], data[:, past:], forced=False) - data[:, past:]).abs().mean()
    model.train()
    return error.item()


def train_one_epoch(model, loader, optimizer, forcing, rng, args):
    for i, batch in enumerate(loader):
        past, future = batch[:, : args.past], batch[:, args.past :]
        loss = nn.functional.huber_loss(model(past, future, rng.random() < forcing), future)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        if i % 50 == 0:
            print(f"   {i:3d}/{len(loader)} {loss.item():.4f}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--past", type=int, default=56)
    p.add_argument("--future", type=int, default=8)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--rows", type=int, default=6400)
    p.add_argument("--clip", type=float, default=1.0)
    args = p.parse_args()
    torch.manual_seed(14)
    rng, generator = random.Random(14), torch.Generator().manual_seed(14)
    data = series(args.rows, args.past + args.future, generator)
    held_back = series(128, args.past + args.future, generator)
    model = Forecaster()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    for epoch in range(args.epochs):
        loader = data[torch.randperm(len(data), generator=generator)].split(args.batch_size)
        train_one_epoch(model, loader, optimizer, 0.9 - 0.2 * epoch, rng, args)
        scheduler.step()
        print(f"epoch {epoch}: validation {evaluate(model, held_back, args.past):.4f}")


if __name__ == "__main__":
    main()
