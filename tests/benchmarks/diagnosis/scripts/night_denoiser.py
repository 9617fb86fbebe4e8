"""Noise out of night recordings: a convolutional denoiser; the best weights so far are kept and restored."""

import copy
import sys
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Settings:
    steps: int = 520
    batch: int = 4
    samples: int = 1024
    width: int = 24
    depth: int = 4
    lr: float = 1e-3
    smoothing: float = 0.995
    check_every: int = 1


class GatedBlock(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.conv = nn.Conv1d(width, 2 * width, 3, padding=dilation, dilation=dilation)
        self.mix = nn.Conv1d(width, width, 1)

    def forward(self, x):
        return x + self.mix(F.glu(self.conv(x), dim=1))


class Denoiser(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.encode = nn.Conv1d(1, cfg.width, 16, stride=8, padding=4)
        self.blocks = nn.Sequential(*[GatedBlock(cfg.width, 2**i) for i in range(cfg.depth)])
        self.context = nn.Sequential(
            nn.AdaptiveAvgPool1d(32),
            nn.Flatten(),
            nn.Linear(32 * cfg.width, 3072),
            nn.ReLU(),
            nn.Linear(3072, cfg.width),
        )
        self.decode = nn.ConvTranspose1d(cfg.width, 1, 16, stride=8, padding=4)

    def forward(self, wave):
        h = self.blocks(self.encode(wave))
        return self.decode(h + self.context(h)[:, :, None])


class BestKeeper:
    """Early stopping on the smoothed loss; what was best is restored at the end."""

    def __init__(self, model, cfg):
        self.model, self.cfg = model, cfg
        self.smoothed, self.best, self.weights = None, float("inf"), None
        self.seen = 0

    def __call__(self, loss):
        value = loss.item()
        self.smoothed = (
            value
            if self.smoothed is None
            else self.cfg.smoothing * self.smoothed + (1 - self.cfg.smoothing) * value
        )
        self.seen += 1
        if self.seen % self.cfg.check_every == 0 and self.smoothed < self.best:
            self.best = self.smoothed
            self.weights = copy.deepcopy(self.model.state_dict())

    def restore(self):
        self.model.load_state_dict(self.weights)


def recordings(cfg, generator):
    """Endless: tones under noise."""
    time = torch.arange(cfg.samples) / 8000
    while True:
        pitch = 100 + 900 * torch.rand(cfg.batch, 3, 1, generator=generator)
        clean = torch.sin(2 * torch.pi * pitch * time).sum(1, keepdim=True) / 3
        yield clean + 0.3 * torch.randn(clean.shape, generator=generator), clean


def spectral_loss(estimate, clean):
    window = torch.hann_window(256)
    a, b = (
        torch.stft(x.squeeze(1), 256, 128, window=window, return_complex=True).abs()
        for x in (estimate, clean)
    )
    return F.l1_loss(estimate, clean) + 0.1 * F.l1_loss(a, b)


def train(cfg):
    model = Denoiser(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, fused=True)
    keeper = BestKeeper(model, cfg)
    for step, (noisy, clean) in enumerate(recordings(cfg, torch.Generator().manual_seed(9))):
        if step == cfg.steps:
            break
        loss = spectral_loss(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        keeper(loss)
        if step % 60 == 0:
            print(f"{step}: {keeper.smoothed:.4f}")
    keeper.restore()


if __name__ == "__main__":
    torch.manual_seed(9)
    train(Settings(check_every=60 if "--fixed" in sys.argv else 1))
