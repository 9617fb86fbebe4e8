"""Sharpness-aware minimization: up the slope, a second pass there, back again, and only then the update."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class SAM(torch.optim.Optimizer):
    """Two passes a step through a closure; the weights in between are set aside and put back."""

    def __init__(self, params, base, rho=0.05, **kwargs):
        super().__init__(params, {"rho": rho, **kwargs})
        self.base = base(self.param_groups, **kwargs)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def climb(self):
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            grads = [p.grad for p in params]
            scale = group["rho"] / (torch.stack(torch._foreach_norm(grads)).norm() + 1e-12)
            group["old"] = torch._foreach_add(params, 0)
            torch._foreach_add_(params, torch._foreach_mul(grads, scale))

    @torch.no_grad()
    def descend(self):
        for group in self.param_groups:
            torch._foreach_copy_([p for p in group["params"] if p.grad is not None], group["old"])

    def step(self, closure):
        closure = torch.enable_grad()(closure)
        loss = closure()
        self.climb()
        self.zero_grad()
        closure()
        self.descend()
        self.base.step()
        self.zero_grad()
        return loss


class Mixer(nn.Module):
    def __init__(self, tokens, dim, depth, classes):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, 4, 4)
        self.across = nn.ModuleList(
            [
                nn.Sequential(nn.Linear(tokens, 2 * tokens), nn.GELU(), nn.Linear(2 * tokens, tokens))
                for _ in range(depth)
            ]
        )
        self.within = nn.ModuleList(
            [nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)) for _ in range(depth)]
        )
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, images):
        x = self.patch(images).flatten(2)
        for across, within in zip(self.across, self.within):
            x = x + across(x)
            x = x + within(x.transpose(1, 2)).transpose(1, 2)
        return self.head(self.norm(x.mean(2)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=150)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--lr", type=float, default=0.05)
    ap.add_argument("--rho", type=float, default=0.05)
    args = ap.parse_args()
    torch.manual_seed(80)
    images = torch.randn(2000, 3, 24, 24)
    labels = images.mean((2, 3)).argmax(1)
    model = Mixer(36, 96, 3, 3)
    optimizer = SAM(model.parameters(), torch.optim.SGD, rho=args.rho, lr=args.lr, momentum=0.9, foreach=True)
    for step in range(args.steps):
        rows = torch.randint(len(images), (args.batch,))

        def closure():
            loss = F.cross_entropy(model(images[rows]), labels[rows], label_smoothing=0.1)
            loss.backward()
            return loss.detach()

        loss = optimizer.step(closure)
        if step % 30 == 0:
            print(f"{step:4d} {loss.item():.4f}")


if __name__ == "__main__":
    main()
