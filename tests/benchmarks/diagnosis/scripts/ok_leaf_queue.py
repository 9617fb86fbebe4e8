"""Leaves without names (MoCo): a query encoder, a slow key encoder, and a queue of earlier keys."""

import argparse
import math
import time

import torch
import torch.nn.functional as F
from torch import nn


class AverageMeter:
    def __init__(self, name, fmt=":.3f"):
        self.name, self.fmt = name, fmt
        self.reset()

    def reset(self):
        self.val = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n

    def __str__(self):
        return ("{} {" + self.fmt + "} ({" + self.fmt + "})").format(
            self.name, float(self.val), float(self.sum / self.count)
        )


class ProgressMeter:
    def __init__(self, num_batches, meters, prefix=""):
        self.num_batches, self.meters, self.prefix = num_batches, meters, prefix

    def display(self, batch):
        print("\t".join([f"{self.prefix}[{batch:3d}/{self.num_batches}]", *map(str, self.meters)]))


def leaves(count, size, kinds, seed):
    g = torch.Generator().manual_seed(seed)
    y, x = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
    kind = torch.randint(kinds, (count,), generator=g)
    shift = 0.3 * (torch.rand(2, count, 1, 1, generator=g) - 0.5)
    dx, dy = x - shift[0], y - shift[1]
    lobes = (kind % 4 + 2).view(-1, 1, 1)
    edge = 0.5 + 0.2 * torch.cos(lobes * torch.atan2(dy, dx))
    shape = torch.sigmoid(20 * (edge - (dx.square() + dy.square()).sqrt()))
    colour = torch.stack(
        [0.2 + 0.1 * (kind // 4), 0.8 - 0.15 * (kind // 4), 0.3 * torch.rand(count, generator=g)], 1
    )
    pictures = shape[:, None] * colour[:, :, None, None]
    return pictures + 0.05 * torch.randn(pictures.shape, generator=g), kind


class TwoCropsTransform:
    """Crop, flip and colours, drawn for every picture of the batch and done for all at once."""

    def __call__(self, images):
        return self.view(images), self.view(images)

    def view(self, images):
        n = len(images)
        scale = torch.empty(n).uniform_(0.5, 1.0)
        flip = torch.where(torch.rand(n) < 0.5, -1.0, 1.0)
        theta = torch.zeros(n, 2, 3)
        theta[:, 0, 0], theta[:, 1, 1] = scale * flip, scale
        theta[:, :, 2] = (1 - scale)[:, None] * torch.empty(n, 2).uniform_(-1, 1)
        out = F.grid_sample(
            images, F.affine_grid(theta, images.shape, align_corners=False), align_corners=False
        )
        return out * torch.empty(n, 3, 1, 1).uniform_(0.7, 1.3) + torch.empty(n, 1, 1, 1).uniform_(-0.1, 0.1)


class BasicBlock(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
        self.downsample = nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(out)) + self.downsample(x))


def encoder(dim, width=20):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
        BasicBlock(width, width, 1), BasicBlock(width, 2 * width, 2), BasicBlock(2 * width, 4 * width, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Sequential(nn.Linear(4 * width, 4 * width), nn.ReLU(), nn.Linear(4 * width, dim)),
    ).to(memory_format=torch.channels_last)  # fmt: skip


class MoCo(nn.Module):
    def __init__(self, dim, K, m, T):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q, self.encoder_k = encoder(dim), encoder(dim)
        self.encoder_k.load_state_dict(self.encoder_q.state_dict())
        self.encoder_k.requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))
        self.ptr = 0
        self.pairs = list(self.encoder_k.parameters()), list(self.encoder_q.parameters())

    @torch.no_grad()
    def keys(self, im_k):
        torch._foreach_lerp_(*self.pairs, 1 - self.m)
        return F.normalize(self.encoder_k(im_k), dim=1)

    @torch.no_grad()
    def enqueue(self, keys):
        self.queue[:, self.ptr : self.ptr + len(keys)] = keys.T
        self.ptr = (self.ptr + len(keys)) % self.K

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        k = self.keys(im_k)
        positive = (q * k).sum(1, keepdim=True)
        logits = torch.cat([positive, q @ self.queue.clone()], 1) / self.T
        self.enqueue(k)
        return logits


@torch.no_grad()
def knn_accuracy(model, images, kinds):
    model.eval()
    z = F.normalize(model.encoder_q(images), dim=1)
    half = len(z) // 2
    near = (z[half:] @ z[:half].T).topk(5).indices
    model.train()
    return (kinds[near].mode().values == kinds[half:]).float().mean().item()


def train(images, transform, model, optimizer, epoch, args):
    losses, top1 = AverageMeter("Loss"), AverageMeter("Acc@1")
    batches = torch.randperm(len(images)).split(args.batch_size)[:-1]
    progress = ProgressMeter(len(batches), [losses, top1], f"Epoch: [{epoch}]")
    for i, batch in enumerate(batches):
        logits = model(*transform(images[batch]))
        labels = torch.zeros(len(logits), dtype=torch.long)
        loss = F.cross_entropy(logits, labels)
        losses.update(loss.detach(), len(batch))
        top1.update((logits.detach().argmax(1) == 0).float().mean(), len(batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % args.print_freq == 0:
            progress.display(i)


def main():
    parser = argparse.ArgumentParser(description="MoCo")
    parser.add_argument("--epochs", default=4, type=int)
    parser.add_argument("--batch-size", default=64, type=int)
    parser.add_argument("--lr", default=0.05, type=float)
    parser.add_argument("--moco-k", default=2048, type=int)
    parser.add_argument("--moco-m", default=0.99, type=float)
    parser.add_argument("--moco-t", default=0.1, type=float)
    parser.add_argument("--print-freq", default=20, type=int)
    parser.add_argument("--seed", default=8, type=int)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    images, kinds = leaves(4000, 40, 12, args.seed)
    images = images.contiguous(memory_format=torch.channels_last)
    model = MoCo(48, args.moco_k, args.moco_m, args.moco_t)
    optimizer = torch.optim.SGD(
        model.encoder_q.parameters(), args.lr, momentum=0.9, weight_decay=1e-4, fused=True
    )
    for epoch in range(args.epochs):
        for group in optimizer.param_groups:
            group["lr"] = args.lr * 0.5 * (1 + math.cos(math.pi * epoch / args.epochs))
        end = time.time()
        train(images[400:], TwoCropsTransform(), model, optimizer, epoch, args)
        print(
            f"epoch {epoch}: {time.time() - end:.1f} s, kNN {knn_accuracy(model, images[:400], kinds[:400]):.3f}"
        )


if __name__ == "__main__":
    main()
