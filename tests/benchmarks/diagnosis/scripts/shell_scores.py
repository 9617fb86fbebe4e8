"""Shells out of noise: a score network for a variance-exploding process, a predictor and a corrector to draw samples."""

import argparse
import math
import tempfile
from pathlib import Path
from types import SimpleNamespace as Namespace

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn


def get_config(snapshot_freq):
    config = Namespace()
    config.seed = 83
    config.data = Namespace(image_size=24, count=1500)
    config.model = Namespace(nf=32, sigma_min=0.01, sigma_max=12.0, num_scales=16, ema_rate=0.995)
    config.training = Namespace(
        batch_size=24, n_iters=180, log_freq=40, snapshot_freq=snapshot_freq, likelihood_weighting=False
    )
    config.sampling = Namespace(snr=0.16, n_steps_each=1, images=9)
    config.optim = Namespace(lr=5e-4, beta1=0.9, warmup=50, grad_clip=1.0)
    return config


def shells(config):
    g = torch.Generator().manual_seed(config.seed)
    n, size = config.data.count, config.data.image_size
    y, x = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
    angle = torch.atan2(y, x)
    turn, tight, wide = torch.rand(3, n, 1, 1, generator=g)
    radius = (x.square() + y.square()).sqrt()
    spiral = torch.cos(angle + 6 * torch.pi * turn + (6 + 10 * tight) * radius)
    return ((spiral * torch.sigmoid(12 * (0.5 + 0.4 * wide - radius)) + 1) / 2)[:, None]


class VESDE:
    def __init__(self, config):
        self.sigma_min, self.sigma_max = config.model.sigma_min, config.model.sigma_max
        self.N = config.model.num_scales
        self.discrete_sigmas = torch.exp(
            torch.linspace(math.log(self.sigma_min), math.log(self.sigma_max), self.N)
        )

    def std(self, t):
        return self.sigma_min * (self.sigma_max / self.sigma_min) ** t

    def prior_sampling(self, shape):
        return torch.randn(shape) * self.sigma_max


class TimeEmbedding(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("freqs", torch.randn(width // 2) * 16)
        self.dense = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, 2 * width))

    def forward(self, sigma):
        angle = sigma.log()[:, None] * self.freqs * 2 * torch.pi
        return self.dense(torch.cat([angle.sin(), angle.cos()], -1))


class ResBlock(nn.Module):
    def __init__(self, before, after, emb):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, before), nn.GroupNorm(8, after)
        self.conv1, self.conv2 = nn.Conv2d(before, after, 3, 1, 1), nn.Conv2d(after, after, 3, 1, 1)
        self.temb = nn.Linear(emb, after)
        self.skip = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

    def forward(self, x, temb):
        h = self.conv1(F.silu(self.norm1(x))) + self.temb(F.silu(temb))[:, :, None, None]
        return (self.skip(x) + self.conv2(F.silu(self.norm2(h)))) / math.sqrt(2)


class ScoreNet(nn.Module):
    def __init__(self, config):
        super().__init__()
        nf = config.model.nf
        self.temb = TimeEmbedding(nf)
        self.conv_in = nn.Conv2d(1, nf, 3, 1, 1)
        self.down1, self.down2 = ResBlock(nf, nf, 2 * nf), ResBlock(nf, 2 * nf, 2 * nf)
        self.middle = ResBlock(2 * nf, 2 * nf, 2 * nf)
        self.up2, self.up1 = ResBlock(4 * nf, nf, 2 * nf), ResBlock(2 * nf, nf, 2 * nf)
        self.conv_out = nn.Sequential(nn.GroupNorm(8, nf), nn.SiLU(), nn.Conv2d(nf, 1, 3, 1, 1))

    def forward(self, x, sigma):
        temb = self.temb(sigma)
        scale = 1 / (1 + sigma.square()).sqrt()
        one = self.down1(self.conv_in(x * scale[:, None, None, None]), temb)
        two = self.down2(F.avg_pool2d(one, 2), temb)
        deep = self.middle(F.avg_pool2d(two, 2), temb)
        h = self.up2(torch.cat([F.interpolate(deep, scale_factor=2.0), two], 1), temb)
        h = self.up1(torch.cat([F.interpolate(h, scale_factor=2.0), one], 1), temb)
        return self.conv_out(h) / sigma[:, None, None, None]


class ExponentialMovingAverage:
    def __init__(self, parameters, decay):
        self.parameters = list(parameters)
        self.decay = decay
        self.shadow = [p.detach().clone() for p in self.parameters]

    @torch.no_grad()
    def update(self):
        torch._foreach_lerp_(self.shadow, self.parameters, 1 - self.decay)

    def swap(self):
        for s, p in zip(self.shadow, self.parameters):
            s.data, p.data = p.data, s.data


def get_sampling_fn(config, sde):
    size = config.data.image_size
    shape = config.sampling.images, 1, size, size

    @torch.no_grad()
    def pc_sampler(model):
        x = sde.prior_sampling(shape)
        for i in reversed(range(sde.N)):
            sigma = sde.discrete_sigmas[i].expand(shape[0])
            for _ in range(config.sampling.n_steps_each):
                score, noise = model(x, sigma), torch.randn_like(x)
                ratio = noise.flatten(1).norm(dim=1).mean() / score.flatten(1).norm(dim=1).mean()
                step = 2 * (config.sampling.snr * ratio) ** 2
                x = x + step * score + (2 * step).sqrt() * noise
            before = sde.discrete_sigmas[i - 1] if i else torch.zeros(())
            gap = sde.discrete_sigmas[i].square() - before.square()
            x_mean = x + gap * model(x, sigma)
            x = x_mean + gap.sqrt() * torch.randn_like(x)
        return x_mean.clamp(0, 1)

    return pc_sampler


def save_image_grid(samples, path):
    side = math.isqrt(len(samples))
    rows = samples.reshape(side, side, *samples.shape[2:]).transpose(1, 2).flatten(2).flatten(0, 1)
    Image.fromarray((rows.numpy() * 255).astype(np.uint8)).save(path)


def train(config, workdir):
    torch.manual_seed(config.seed)
    data = shells(config)
    sde = VESDE(config)
    model = ScoreNet(config)
    ema = ExponentialMovingAverage(model.parameters(), config.model.ema_rate)
    optimizer = torch.optim.Adam(
        model.parameters(), config.optim.lr, betas=(config.optim.beta1, 0.999), fused=True
    )
    sampling_fn = get_sampling_fn(config, sde)
    for step in range(1, config.training.n_iters + 1):
        batch = data[torch.randint(len(data), (config.training.batch_size,))]
        std = sde.std(torch.rand(len(batch)) * (1 - 1e-5) + 1e-5)
        noise = torch.randn_like(batch)
        score = model(batch + noise * std[:, None, None, None], std)
        loss = (score * std[:, None, None, None] + noise).square().sum((1, 2, 3)).mean() / 2
        optimizer.zero_grad()
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = config.optim.lr * min(step / config.optim.warmup, 1.0)
        nn.utils.clip_grad_norm_(model.parameters(), config.optim.grad_clip)
        optimizer.step()
        ema.update()
        if step % config.training.log_freq == 0:
            print(f"step: {step}, training_loss: {loss.item():.4e}")
        if step % config.training.snapshot_freq == 0:
            ema.swap()
            sample = sampling_fn(model)
            ema.swap()
            save_image_grid(sample, workdir / f"sample_{step:05}.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--snapshot_freq", type=int, default=12)
    parser.add_argument("--fixed", action="store_true", help="look at samples twice in the run")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        train(get_config(90 if args.fixed else args.snapshot_freq), Path(folder))
