"""Fine-tuning a small vision transformer on mosses, with a learning rate that decays from layer to layer."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class TinyViT(nn.Module):
    def __init__(self, classes, dim=96, depth=12, heads=4, patch=16, side=48):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, dim, patch, patch)
        self.pos_embed = nn.Parameter(torch.randn(1, (side // patch) ** 2, dim) * 0.02)
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patch_embed(x).flatten(2).transpose(1, 2) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


def layer_of(name, depth):
    if name.startswith(("patch_embed", "pos_embed")):
        return 0
    if name.startswith("blocks."):
        return int(name.split(".")[1]) + 1
    return depth + 1


def param_groups(model, lr, weight_decay, layer_decay):
    """A group for each parameter, with its own rate and decay."""
    depth = len(model.blocks)
    for name, param in model.named_parameters():
        yield {
            "params": [param],
            "name": name,
            "lr": lr * layer_decay ** (depth + 1 - layer_of(name, depth)),
            "weight_decay": 0.0 if param.ndim < 2 else weight_decay,
        }


def merged(groups):
    """Parameters of equal rate and decay together."""
    together = {}
    for group in groups:
        key = group["lr"], group["weight_decay"]
        entry = together.setdefault(
            key, {"params": [], "lr": group["lr"], "weight_decay": group["weight_decay"]}
        )
        entry["params"] += group["params"]
    return list(together.values())


def build_optimizer(model, args):
    groups = param_groups(model, args.lr, args.weight_decay, args.layer_decay)
    if args.fixed:
        return torch.optim.AdamW(merged(groups), betas=(0.9, 0.98), fused=True)
    return torch.optim.AdamW(list(groups), betas=(0.9, 0.98))


class Progress:
    def __init__(self, total, every):
        self.total, self.every, self.done = total, every, 0

    def advance(self, loss):
        self.done += 1
        if self.done % self.every == 0:
            filled = 20 * self.done // self.total
            print(f"|{'#' * filled}{'.' * (20 - filled)}| {self.done}/{self.total} loss={loss.item():.3f}")


def finetune(model, images, labels, args):
    optimizer = build_optimizer(model, args)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    progress = Progress(args.steps, every=50)
    model.train()
    for _ in range(args.steps):
        rows = torch.randint(len(images), (args.batch_size,))
        loss = F.cross_entropy(model(images[rows]), labels[rows], label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        progress.advance(loss.detach())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=320)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--weight-decay", type=float, default=0.05)
    parser.add_argument("--layer-decay", type=float, default=0.75)
    parser.add_argument("--species", type=int, default=40)
    parser.add_argument("--fixed", action="store_true", help="few groups, one pass over them")
    args = parser.parse_args()
    torch.manual_seed(6)
    images = torch.randn(600, 3, 48, 48)
    labels = torch.randint(args.species, (600,))
    finetune(TinyViT(args.species), images, labels, args)
