"""Denoising diffusion on pictures of clouds, cosine schedule, v-prediction."""

import argparse
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class CosineSchedule:
    """How much of the picture is left after t steps of noise."""

    timesteps: int = 1000
    offset: float = 0.008
    max_beta: float = 0.999
    remember: bool = False

    def _level(self, t):
        return math.cos((t / self.timesteps + self.offset) / (1 + self.offset) * math.pi / 2) ** 2

    @property
    def betas(self):
        if self.remember and hasattr(self, "_betas"):
            return self._betas
        steps = range(self.timesteps)
        values = [min(1 - self._level(t + 1) / self._level(t), self.max_beta) for t in steps]
        self._betas = torch.tensor(values)
        return self._betas

    @property
    def alphas_cumprod(self):
        return torch.cumprod(1 - self.betas, dim=0)

    @property
    def signal(self):
        return self.alphas_cumprod.sqrt()

    @property
    def noise(self):
        return (1 - self.alphas_cumprod).sqrt()

    @property
    def weight(self):
        snr = self.alphas_cumprod / (1 - self.alphas_cumprod)
        return snr.clamp(max=5) / (snr + 1)


def at(table, t):
    return table[t].view(-1, 1, 1, 1)


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("freqs", torch.exp(-math.log(10000) * torch.arange(dim // 2) / (dim // 2)))
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, t):
        angles = t[:, None].float() * self.freqs[None]
        return self.mlp(torch.cat([angles.sin(), angles.cos()], dim=1))


class ResBlock(nn.Module):
    def __init__(self, channels, t_dim):
        super().__init__()
        self.norm = nn.GroupNorm(4, channels)
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.shift = nn.Linear(t_dim, channels)

    def forward(self, x, t):
        h = self.conv(F.silu(self.norm(x)))
        return x + F.silu(h + self.shift(t)[:, :, None, None])


class Denoiser(nn.Module):
    def __init__(self, channels=16, t_dim=32, depth=2):
        super().__init__()
        self.time = TimeEmbedding(t_dim)
        self.stem = nn.Conv2d(1, channels, 3, padding=1)
        self.blocks = nn.ModuleList([ResBlock(channels, t_dim) for _ in range(depth)])
        self.out = nn.Conv2d(channels, 1, 3, padding=1)

    def forward(self, x, t):
        emb = self.time(t)
        h = self.stem(x)
        for block in self.blocks:
            h = block(h, emb)
        return self.out(h)


class GaussianDiffusion(nn.Module):
    def __init__(self, denoiser, schedule):
        super().__init__()
        self.denoiser = denoiser
        self.schedule = schedule

    def q_sample(self, x0, t, eps):
        return at(self.schedule.signal, t) * x0 + at(self.schedule.noise, t) * eps

    def forward(self, x0):
        t = torch.randint(self.schedule.timesteps, (len(x0),))
        eps = torch.randn_like(x0)
        target = at(self.schedule.signal, t) * eps - at(self.schedule.noise, t) * x0
        v = self.denoiser(self.q_sample(x0, t, eps), t)
        per_image = (v - target).pow(2).mean(dim=(1, 2, 3))
        return (per_image * self.schedule.weight[t]).mean()


class EMA:
    def __init__(self, model, decay=0.995):
        self.decay = decay
        self.source = list(model.parameters())
        self.shadow = [p.detach().clone() for p in self.source]

    @torch.no_grad()
    def update(self):
        torch._foreach_lerp_(self.shadow, self.source, 1 - self.decay)


class Trainer:
    def __init__(self, diffusion, images, *, batch_size, lr, steps, ema_every=10, log_every=50):
        self.diffusion, self.images = diffusion, images
        self.batch_size, self.steps = batch_size, steps
        self.ema_every, self.log_every = ema_every, log_every
        self.opt = torch.optim.Adam(diffusion.parameters(), lr=lr, fused=True)
        self.ema = EMA(diffusion)

    def train(self):
        for step in range(1, self.steps + 1):
            x0 = self.images[torch.randint(len(self.images), (self.batch_size,))]
            loss = self.diffusion(x0)
            self.opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(self.diffusion.parameters(), 1.0)
            self.opt.step()
            if step % self.ema_every == 0:
                self.ema.update()
            if step % self.log_every == 0:
                print(f"step {step}: {loss.item():.4f}")


def clouds(n, side):
    coarse = torch.randn(n, 1, side // 4, side // 4)
    return F.interpolate(coarse, size=(side, side), mode="bilinear").tanh()


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--steps", type=int, default=600)
    cli.add_argument("--batch-size", type=int, default=16)
    cli.add_argument("--lr", type=float, default=1e-3)
    cli.add_argument("--timesteps", type=int, default=1000)
    cli.add_argument("--fixed", action="store_true", help="the schedule is worked out once")
    args = cli.parse_args()
    torch.manual_seed(5)
    model = GaussianDiffusion(Denoiser(), CosineSchedule(args.timesteps, remember=args.fixed))
    Trainer(model, clouds(800, 20), batch_size=args.batch_size, lr=args.lr, steps=args.steps).train()
