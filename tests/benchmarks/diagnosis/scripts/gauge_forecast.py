"""Water level two days ahead with a temporal convolution; the optimizer goes back when a step went wrong."""

import argparse
import copy
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Options:
    window: int = 48
    horizon: int = 24
    stations: int = 16
    channels: int = 48
    batch_size: int = 16
    steps: int = 500
    lr: float = 1e-3
    snapshot_every: int = 1


class GuardedAdamW(torch.optim.AdamW):
    """AdamW that keeps a good state of weights and moments, and returns to it when the loss is not finite."""

    def __init__(self, module, *, snapshot_every, **kwargs):
        super().__init__(module.parameters(), **kwargs)
        self.module = module
        self.snapshot_every = snapshot_every
        self.calls = 0
        self.good = None
        self.rollbacks = 0

    def remember(self):
        self.good = copy.deepcopy((self.module.state_dict(), self.state_dict()))

    def roll_back(self):
        weights, moments = self.good
        self.module.load_state_dict(weights)
        self.load_state_dict(moments)
        self.rollbacks += 1

    def step(self, closure=None, *, loss=None):
        if loss is not None and self.good is not None and not torch.isfinite(loss):
            return self.roll_back()
        result = super().step(closure)
        self.calls += 1
        if self.calls % self.snapshot_every == 0:
            self.remember()
        return result


class CausalConv(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.Conv1d(channels, 2 * channels, 3, dilation=dilation)

    def forward(self, x):
        a, b = self.conv(F.pad(x, (self.pad, 0))).chunk(2, dim=1)
        return x + a.tanh() * b.sigmoid()


class TCN(nn.Module):
    def __init__(self, opt):
        super().__init__()
        self.inp = nn.Conv1d(opt.stations, opt.channels, 1)
        self.layers = nn.Sequential(*[CausalConv(opt.channels, 2**k) for k in range(5)])
        self.out = nn.Linear(opt.channels * opt.window, opt.stations * opt.horizon)
        self.shape = opt.stations, opt.horizon

    def forward(self, x):
        return self.out(self.layers(self.inp(x)).flatten(1)).view(-1, *self.shape)


class Windows:
    """Pieces of one long series, cut where the loop asks."""

    def __init__(self, opt, length=6000):
        t = torch.arange(length) / 48
        phase = torch.rand(opt.stations, 1) * 6.28
        self.series = (t[None] + phase).sin() + 0.2 * torch.randn(opt.stations, length)
        self.opt = opt
        self.pieces = self.series.unfold(1, opt.window + opt.horizon, 1).transpose(0, 1)

    def batch(self):
        rows = torch.randint(len(self.pieces), (self.opt.batch_size,))
        piece = self.pieces[rows]
        return piece[..., : self.opt.window], piece[..., self.opt.window :]


def quantile_loss(pred, target, q=0.6):
    error = target - pred
    return torch.maximum(q * error, (q - 1) * error).mean()


def fit(opt):
    data, model = Windows(opt), TCN(opt)
    optimizer = GuardedAdamW(
        model, snapshot_every=opt.snapshot_every, lr=opt.lr, weight_decay=0.01, fused=True
    )
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, opt.steps)
    for step in range(opt.steps):
        past, future = data.batch()
        loss = quantile_loss(model(past), future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step(loss=loss.detach())
        scheduler.step()
        if step % 50 == 0:
            print(f"{step:4d} {loss.item():.4f} ({optimizer.rollbacks} times back)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=Options.steps)
    parser.add_argument("--fixed", action="store_true", help="a snapshot every 200 steps")
    args = parser.parse_args()
    torch.manual_seed(42)
    fit(Options(steps=args.steps, snapshot_every=200 if args.fixed else Options.snapshot_every))
