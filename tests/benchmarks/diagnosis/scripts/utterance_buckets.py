"""Intent of a spoken sentence; utterances of like length share a batch, so that little is padded."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler

N_MELS = 16
INTENTS = 12


class Utterances(Dataset):
    def __init__(self, n, rng):
        self.lengths = rng.integers(24, 110, n)
        self.intent = torch.from_numpy(rng.integers(0, INTENTS, n))
        self.frames = [
            torch.from_numpy(rng.normal(size=(t, N_MELS)).astype(np.float32)) for t in self.lengths
        ]

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, i):
        return self.frames[i], self.intent[i]


class SimilarLength(Sampler):
    """A batch is a random utterance and those whose length is nearest to it."""

    def __init__(self, lengths, batch_size, seed=0):
        self.lengths = [int(n) for n in lengths]
        self.batch_size = batch_size
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return len(self.lengths) // self.batch_size

    def __iter__(self):
        remaining = list(range(len(self.lengths)))
        while len(remaining) >= self.batch_size:
            anchor = self.lengths[remaining[int(self.rng.integers(len(remaining)))]]
            nearest = sorted(remaining, key=lambda i: abs(self.lengths[i] - anchor))
            chosen = set(nearest[: self.batch_size])
            remaining = [i for i in remaining if i not in chosen]
            yield sorted(chosen)


class Bucketed(Sampler):
    """Sorted once in an epoch (with some noise) and cut; the pieces come in random order."""

    def __init__(self, lengths, batch_size, seed=0):
        self.lengths = np.asarray(lengths, dtype=np.float64)
        self.batch_size = batch_size
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return len(self.lengths) // self.batch_size

    def __iter__(self):
        order = np.argsort(self.lengths + self.rng.uniform(0, 1, len(self.lengths)))
        whole = order[: len(self) * self.batch_size].reshape(-1, self.batch_size)
        for piece in self.rng.permutation(whole):
            yield piece.tolist()


def pad_collate(samples):
    frames, intent = zip(*samples)
    lengths = torch.tensor([len(f) for f in frames])
    return pad_sequence(frames, batch_first=True), lengths, torch.stack(intent)


class IntentNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.front = nn.Conv1d(N_MELS, width, 5, stride=2, padding=2)
        self.blocks = nn.ModuleList([nn.Conv1d(width, width, 5, padding=2) for _ in range(2)])
        self.head = nn.Linear(width, INTENTS)

    def forward(self, frames, lengths):
        x = self.front(frames.transpose(1, 2)).relu()
        for block in self.blocks:
            x = x + block(x).relu()
        valid = torch.arange(x.shape[2])[None] < ((lengths + 1) // 2)[:, None]
        pooled = (x * valid[:, None]).sum(2) / valid.sum(1, keepdim=True)
        return self.head(pooled)


class Meter:
    def __init__(self):
        self.total, self.count = torch.zeros(()), 0

    def add(self, value):
        self.total += value.detach()
        self.count += 1

    def read_and_reset(self):
        mean = (self.total / max(self.count, 1)).item()
        self.__init__()
        return mean


def run(args):
    torch.manual_seed(21)
    data = Utterances(args.utterances, np.random.default_rng(21))
    sampler_class = Bucketed if args.fixed else SimilarLength
    sampler = sampler_class(data.lengths, args.batch_size, seed=5)
    loader = DataLoader(data, batch_sampler=sampler, collate_fn=pad_collate)
    model = IntentNet(args.width)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    meter, step = Meter(), 0
    for epoch in range(args.epochs):
        for frames, lengths, intent in loader:
            logits = model(frames, lengths)
            loss = nn.functional.cross_entropy(logits, intent, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            meter.add(loss)
            step += 1
            if step % 60 == 0:
                print(f"epoch {epoch} step {step}: {meter.read_and_reset():.4f}")
        schedule.step()


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--utterances", type=int, default=16_000)
    cli.add_argument("--batch-size", type=int, default=32)
    cli.add_argument("--epochs", type=int, default=2)
    cli.add_argument("--width", type=int, default=64)
    cli.add_argument("--lr", type=float, default=0.02)
    cli.add_argument("--fixed", action="store_true", help="buckets made once in an epoch")
    run(cli.parse_args())
