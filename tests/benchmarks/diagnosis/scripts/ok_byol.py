"""Self-supervised BYOL: the online network predicts what a slowly moving target makes of another view."""

import argparse
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn


def projector(n_in, hidden, n_out):
    return nn.Sequential(nn.Linear(n_in, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, n_out))


class Encoder(nn.Sequential):
    def __init__(self, width):
        super().__init__(
            nn.Conv2d(3, width, 3, 2, 1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, 1, 1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            projector(8 * width, 256, 64),
        )


class BatchAugment(nn.Module):
    """A shift, a mirror image and a change of brightness, drawn for the whole batch at once."""

    def forward(self, x):
        dx, dy = torch.randint(-4, 5, (2,)).tolist()
        x = torch.roll(x, (dy, dx), dims=(2, 3))
        flipped = torch.rand(len(x), 1, 1, 1) < 0.5
        x = torch.where(flipped, x.flip(3), x)
        return x * (0.7 + 0.6 * torch.rand(len(x), 1, 1, 1))


class BYOL(nn.Module):
    def __init__(self, width, base_tau, total_steps):
        super().__init__()
        self.online = Encoder(width)
        self.predictor = projector(64, 256, 64)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.augment = BatchAugment()
        self.base_tau, self.total_steps = base_tau, total_steps

    def forward(self, images):
        one, two = self.augment(images), self.augment(images)
        predicted = self.predictor(self.online(torch.cat([one, two])))
        with torch.no_grad():
            wanted = self.target(torch.cat([two, one]))
        return 2 - 2 * F.cosine_similarity(predicted, wanted).mean()

    @torch.no_grad()
    def momentum_update(self, step):
        tau = 1 - (1 - self.base_tau) * (math.cos(math.pi * step / self.total_steps) + 1) / 2
        torch._foreach_lerp_(list(self.target.parameters()), list(self.online.parameters()), 1 - tau)


def pretrain(args):
    torch.manual_seed(args.seed)
    images = torch.randn(1500, 3, 32, 32)
    model = BYOL(args.width, args.tau, args.steps)
    trained = [*model.online.parameters(), *model.predictor.parameters()]
    optimizer = torch.optim.SGD(trained, lr=args.lr, momentum=0.9, weight_decay=1e-5, fused=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    for step in range(args.steps):
        loss = model(images[torch.randint(len(images), (args.batch_size,))])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        model.momentum_update(step)
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--steps", type=int, default=180)
    cli.add_argument("--batch-size", type=int, default=64)
    cli.add_argument("--width", type=int, default=24)
    cli.add_argument("--lr", type=float, default=0.05)
    cli.add_argument("--tau", type=float, default=0.99)
    cli.add_argument("--seed", type=int, default=12)
    pretrain(cli.parse_args())
