"""What lies on the harbour floor: echoes in compressed archives, sixty-four to a file, one network of residual blocks."""

import argparse
import dataclasses
import tempfile
from bisect import bisect_right
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclasses.dataclass(frozen=True)
class Settings:
    root: Path
    files: int = 24
    per_file: int = 64
    samples: int = 384
    kinds: int = 6
    width: int = 48
    batch_size: int = 32
    epochs: int = 9
    lr: float = 2e-3
    keep_open: bool = False


def survey(settings):
    """The archives as the boat wrote them: `survey_000.npz` and so on."""
    rng = np.random.default_rng(14)
    time = np.linspace(0, 1, settings.samples, dtype=np.float32)
    for number in range(settings.files):
        kind = rng.integers(0, settings.kinds, settings.per_file)
        delay = rng.uniform(0.1, 0.8, (settings.per_file, 1)).astype(np.float32)
        echo = np.exp(-((time - delay) ** 2) * (80 + 60 * kind[:, None])) * np.sin(
            time * (40 + 25 * kind[:, None])
        )
        echo = echo[:, None] + rng.normal(0, 0.3, (settings.per_file, 2, settings.samples))
        np.savez_compressed(
            settings.root / f"survey_{number:03}.npz", echo=echo.astype(np.float16), kind=kind
        )


class Echoes(Dataset):
    """All records of a folder of archives."""

    def __init__(self, root, keep_open=False):
        self.paths = sorted(Path(root).glob("survey_*.npz"))
        self.ends = np.cumsum([len(np.load(path)["kind"]) for path in self.paths]).tolist()
        self.archives = {} if keep_open else None

    def __len__(self):
        return self.ends[-1]

    def archive(self, number):
        if self.archives is None:
            return np.load(self.paths[number])
        if number not in self.archives:
            with np.load(self.paths[number]) as found:
                self.archives[number] = {name: found[name] for name in found.files}
        return self.archives[number]

    def __getitem__(self, index):
        number = bisect_right(self.ends, index)
        row = index - (self.ends[number - 1] if number else 0)
        archive = self.archive(number)
        echo = archive["echo"][row].astype(np.float32)
        echo = (echo - echo.mean()) / echo.std()
        return torch.from_numpy(echo), int(archive["kind"][row])


class Block(nn.Module):
    def __init__(self, width, stride):
        super().__init__()
        self.first = nn.Conv1d(width, width, 7, stride, 3, bias=False)
        self.second = nn.Conv1d(width, width, 5, 1, 2, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm1d(width), nn.BatchNorm1d(width)])
        self.short = nn.AvgPool1d(stride)

    def forward(self, x):
        inside = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(inside)) + self.short(x))


def build(settings):
    return nn.Sequential(
        nn.Conv1d(2, settings.width, 9, 2, 4), nn.ReLU(),
        Block(settings.width, 2), Block(settings.width, 2), Block(settings.width, 2),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(settings.width, settings.kinds),
    )  # fmt: skip


class Experiment:
    def __init__(self, settings):
        self.settings = settings
        data = Echoes(settings.root, settings.keep_open)
        self.loader = DataLoader(data, settings.batch_size, shuffle=True, drop_last=True)
        self.network = build(settings)
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=settings.lr, fused=True)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, settings.epochs)

    def run(self):
        for epoch in range(self.settings.epochs):
            right = seen = 0
            for echo, kind in self.loader:
                scores = self.network(echo)
                loss = F.cross_entropy(scores, kind, label_smoothing=0.05)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                right += (scores.argmax(1) == kind).sum()
                seen += len(kind)
            self.schedule.step()
            print(f"epoch {epoch}: {float(right) / seen:.3f} right")


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--epochs", type=int, default=Settings.epochs)
    cli.add_argument("--fixed", action="store_true", help="every archive is unpacked once")
    args = cli.parse_args()
    torch.manual_seed(14)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(Path(folder), epochs=args.epochs, keep_open=args.fixed)
        survey(settings)
        Experiment(settings).run()
