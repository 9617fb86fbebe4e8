"""Coins as a few codes (VQ-VAE): a codebook that follows by moving averages, a perceptual loss from a frozen network."""

import argparse
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn


def coins(count, size, seed):
    g = torch.Generator().manual_seed(seed)
    y, x = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
    radius, angle = (x.square() + y.square()).sqrt(), torch.atan2(y, x)
    rays, turn, bright, rim = torch.rand(4, count, 1, 1, 1, generator=g)
    face = 0.5 + 0.4 * torch.cos((3 + 5 * rays).round() * angle + 6 * turn) * torch.exp(-2 * radius)
    ring = torch.exp(-80 * (radius - 0.5 - 0.3 * rim).square())
    metal = torch.rand(count, 3, 1, 1, generator=g) * 0.5 + 0.4
    picture = (face * (0.5 + bright) + ring) * (radius < 0.9) * metal
    return picture + 0.02 * torch.randn(picture.shape, generator=g)


class VectorQuantizerEMA(nn.Module):
    def __init__(self, codes, dim, decay=0.98, commitment=0.25, eps=1e-5):
        super().__init__()
        self.decay, self.commitment, self.eps = decay, commitment, eps
        table = torch.randn(codes, dim)
        self.register_buffer("embedding", table)
        self.register_buffer("cluster_size", torch.zeros(codes))
        self.register_buffer("embed_avg", table.clone())
        self.started = False

    def forward(self, z):
        flat = z.permute(0, 2, 3, 1).reshape(-1, z.shape[1])
        with torch.no_grad():
            if self.training and not self.started:
                self.start(flat)
            distance = self.embedding.square().sum(1) - 2 * flat @ self.embedding.T
            index = distance.argmin(1)
            if self.training:
                self.follow(flat, index)
        quantized = F.embedding(index, self.embedding)
        quantized = quantized.view(len(z), *z.shape[2:], -1).permute(0, 3, 1, 2)
        loss = self.commitment * F.mse_loss(z, quantized)
        return z + (quantized - z).detach(), loss, index

    def start(self, flat):
        """The codes begin where the encoder's first outputs are."""
        self.embedding.copy_(flat[torch.randperm(len(flat))[: len(self.embedding)]])
        self.embed_avg.copy_(self.embedding)
        self.cluster_size.fill_(1.0)
        self.started = True

    def follow(self, flat, index):
        count = torch.bincount(index, minlength=len(self.embedding)).to(flat.dtype)
        total = torch.zeros_like(self.embedding).index_add_(0, index, flat)
        self.cluster_size.lerp_(count, 1 - self.decay)
        self.embed_avg.lerp_(total, 1 - self.decay)
        n = self.cluster_size.sum()
        smoothed = (self.cluster_size + self.eps) / (n + len(count) * self.eps) * n
        self.embedding.copy_(self.embed_avg / smoothed[:, None])


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.block = nn.Sequential(
            nn.ReLU(), nn.Conv2d(width, width // 2, 3, 1, 1), nn.ReLU(), nn.Conv2d(width // 2, width, 1)
        )

    def forward(self, x):
        return x + self.block(x)


class VQVAE(nn.Module):
    def __init__(self, width=48, codes=128, dim=24):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, width // 2, 4, 2, 1), nn.ReLU(), nn.Conv2d(width // 2, width, 4, 2, 1),
            Residual(width), Residual(width), nn.ReLU(), nn.Conv2d(width, dim, 1),
        )  # fmt: skip
        self.quantizer = VectorQuantizerEMA(codes, dim)
        self.decoder = nn.Sequential(
            nn.Conv2d(dim, width, 3, 1, 1), Residual(width), Residual(width), nn.ReLU(),
            nn.ConvTranspose2d(width, width // 2, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(width // 2, 3, 4, 2, 1),
        )  # fmt: skip

    def forward(self, x):
        z, loss, index = self.quantizer(self.encoder(x))
        return self.decoder(z), loss, index


class Perceptual(nn.Module):
    """Distances between features of a network that stays as it is."""

    def __init__(self, width=16):
        super().__init__()
        self.stages = nn.ModuleList(
            [
                nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.ReLU()),
                nn.Sequential(nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU()),
            ]
        )
        self.requires_grad_(False).eval()

    def features(self, x):
        found = []
        for stage in self.stages:
            x = stage(x)
            found.append(x)
        return found

    def forward(self, said, meant):
        with torch.no_grad():
            wanted = self.features(meant)
        return sum(F.l1_loss(one, other) for one, other in zip(self.features(said), wanted))


class Solver:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        pictures = coins(2200, 36, args.seed).contiguous(memory_format=torch.channels_last)
        self.test, self.train = pictures[:200, :, 2:34, 2:34], pictures[200:]
        self.net = VQVAE().to(memory_format=torch.channels_last)
        self.perceptual = Perceptual().to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.Adam(self.net.parameters(), args.lr, fused=True)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, 4 * args.lr, args.iters)

    def batch(self):
        """Random crops; the whole batch is moved by the same few pixels."""
        top, left = torch.randint(5, (2,)).tolist()
        index = torch.randint(len(self.train), (self.args.batch,))
        return self.train[index, :, top : top + 32, left : left + 32]

    def fit(self):
        for step in range(1, self.args.iters + 1):
            x = self.batch()
            recon, commit, index = self.net(x)
            recon_loss = F.mse_loss(recon, x) / 0.06
            loss = recon_loss + commit + 0.5 * self.perceptual(recon, x)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            if step % 50 == 0:
                share = torch.bincount(index, minlength=128) / len(index)
                perplexity = torch.exp(-(share * (share + 1e-10).log()).sum())
                print(f"{step}: recon {recon_loss.item():.3f}, perplexity {perplexity.item():.1f}")
            if step % 150 == 0:
                print(f"{step}: test error {self.evaluate():.4f}")
        torch.save(self.net.state_dict(), self.folder / "vqvae.pt")

    @torch.no_grad()
    def evaluate(self):
        self.net.eval()
        error = F.mse_loss(self.net(self.test)[0], self.test).item()
        self.net.train()
        return error


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=450)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=4e-4)
    parser.add_argument("--seed", type=int, default=70)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        Solver(args, Path(folder)).fit()
