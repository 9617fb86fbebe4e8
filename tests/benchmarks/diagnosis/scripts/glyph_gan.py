"""Letters drawn by a GAN: generator and discriminator with an optimizer each, an average of the generator."""

import argparse
import functools
import os
import tempfile

import torch
import torch.nn.functional as F
from torch import nn


def autosave(method):
    """After every `save_interval` calls of the method all that is needed to go on is on disk."""

    @functools.wraps(method)
    def wrapper(self, *args, **kwargs):
        result = method(self, *args, **kwargs)
        self.iteration += 1
        if self.iteration % self.opt.save_interval == 0:
            self.save(os.path.join(self.run_dir, "last.pt"))
        return result

    return wrapper


class Generator(nn.Module):
    def __init__(self, z_dim, width, pixels):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(z_dim, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, 2 * width),
            nn.BatchNorm1d(2 * width),
            nn.ReLU(),
            nn.Linear(2 * width, pixels),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self, width, pixels):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(pixels, 2 * width), nn.LeakyReLU(0.2), nn.Linear(2 * width, width), nn.LeakyReLU(0.2)
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.net(x)).squeeze(1)


class GlyphGAN:
    def __init__(self, opt, run_dir):
        self.opt, self.run_dir = opt, run_dir
        self.G = Generator(opt.z_dim, opt.width, opt.pixels)
        self.D = Discriminator(opt.width, opt.pixels)
        self.G_ema = Generator(opt.z_dim, opt.width, opt.pixels).requires_grad_(False)
        self.G_ema.load_state_dict(self.G.state_dict())
        self.opt_g = torch.optim.Adam(self.G.parameters(), lr=opt.lr, betas=(0.5, 0.99), fused=True)
        self.opt_d = torch.optim.Adam(self.D.parameters(), lr=opt.lr, betas=(0.5, 0.99), fused=True)
        self.iteration = 0

    def noise(self, n):
        return torch.randn(n, self.opt.z_dim)

    def d_step(self, real):
        with torch.no_grad():
            fake = self.G(self.noise(len(real)))
        loss = F.relu(1 - self.D(real)).mean() + F.relu(1 + self.D(fake)).mean()
        self.opt_d.zero_grad()
        loss.backward()
        self.opt_d.step()
        return loss.detach()

    def g_step(self, n):
        loss = -self.D(self.G(self.noise(n))).mean()
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        return loss.detach()

    @torch.no_grad()
    def update_ema(self):
        torch._foreach_lerp_(list(self.G_ema.parameters()), list(self.G.parameters()), 1 - self.opt.ema)

    @autosave
    def optimize_parameters(self, real):
        losses = self.d_step(real), self.g_step(len(real))
        self.update_ema()
        return losses

    def save(self, path):
        state = {name: getattr(self, name).state_dict() for name in ("G", "D", "G_ema", "opt_g", "opt_d")}
        torch.save({**state, "iteration": self.iteration}, path + ".tmp")
        os.replace(path + ".tmp", path)


def glyphs(n, side):
    """Strokes: a bar and a dot at random places."""
    canvas = -torch.ones(n, side, side)
    rows, columns = torch.randint(side - 3, (2, n))
    for i in range(n):
        canvas[i, rows[i] : rows[i] + 3] = 1
        canvas[i, :, columns[i] : columns[i] + 2] = 1
    return canvas.flatten(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=180)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--z-dim", type=int, default=64)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--side", type=int, default=28)
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--ema", type=float, default=0.995)
    parser.add_argument("--save-interval", type=int, default=2)
    parser.add_argument("--fixed", action="store_true", help="save every 120 iterations")
    opt = parser.parse_args()
    opt.pixels = opt.side**2
    if opt.fixed:
        opt.save_interval = 120
    torch.manual_seed(8)
    data = glyphs(2000, opt.side)
    with tempfile.TemporaryDirectory() as run_dir:
        gan = GlyphGAN(opt, run_dir)
        for it in range(opt.iterations):
            real = data[torch.randint(len(data), (opt.batch,))]
            loss_d, loss_g = gan.optimize_parameters(real)
            if it % 40 == 0:
                print(f"{it:5d}  D {loss_d.item():.3f}  G {loss_g.item():.3f}")


if __name__ == "__main__":
    main()
