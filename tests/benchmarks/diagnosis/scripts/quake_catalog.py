"""Earthquake or quarry blast, from noisy wave forms cut out of long records."""

import sys

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

WORKERS = 1 if "--fixed" in sys.argv else 0


class Cuts(Dataset):
    def __init__(self, n=4000):
        rng = np.random.default_rng(3)
        self.records = rng.standard_normal((40, 60000)).astype(np.float32)
        self.where = rng.integers(0, 50000, n)

    def __len__(self):
        return len(self.where)

    def __getitem__(self, i):
        start = self.where[i] + np.random.randint(0, 400)
        cut = self.records[i % 40, start : start + 8192]
        spectrum = np.fft.rfft(cut)
        spectrum[:30] = 0
        spectrum *= np.exp(1j * np.random.uniform(-0.1, 0.1, spectrum.shape))
        back = np.fft.irfft(spectrum)
        envelope = np.sqrt(np.convolve(back**2, np.ones(33) / 33, mode="same"))
        return torch.from_numpy(envelope[::4].astype(np.float32))[None], i % 2


def build():
    return nn.Sequential(
        nn.Conv1d(1, 16, 9, stride=4),
        nn.ReLU(),
        nn.Conv1d(16, 32, 9, stride=4),
        nn.ReLU(),
        nn.Conv1d(32, 64, 5, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(4),
        nn.Flatten(),
        nn.Linear(256, 2),
    )


def run():
    net, crit = build(), nn.CrossEntropyLoss()
    opt = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
    dl = DataLoader(
        Cuts(), batch_size=40, shuffle=True, num_workers=WORKERS, persistent_workers=bool(WORKERS)
    )
    for ep in range(3):
        tot = 0.0
        for waves, kind in dl:
            opt.zero_grad(set_to_none=True)
            out = crit(net(waves), kind)
            out.backward()
            opt.step()
            tot += out.detach()
        print("epoch", ep, float(tot) / len(dl))


if __name__ == "__main__":
    run()
