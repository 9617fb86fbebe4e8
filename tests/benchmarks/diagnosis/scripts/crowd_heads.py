"""Finding heads in pictures of a crowd: a small CenterNet with one heatmap peak for each head."""

import argparse
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=14)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--images", type=int, default=384)
    p.add_argument("--max-heads", type=int, default=36)
    p.add_argument("--size", type=int, default=64)
    p.add_argument("--print-freq", type=int, default=50)
    p.add_argument("--amp", action="store_true")
    p.add_argument("--fixed", action="store_true", help="render the targets once, when the data set is made")
    return p.parse_args()


class Crowd(Dataset):
    """Pictures with boxes, as an annotation tool exports them."""

    def __init__(self, n, size, max_heads, seed):
        rng = np.random.default_rng(seed)
        self.pictures = rng.normal(size=(n, 3, size, size)).astype(np.float32)
        self.annotations = []
        for i in range(n):
            k = int(rng.integers(12, max_heads))
            centre = rng.uniform(6, size - 6, (k, 2))
            extent = rng.uniform(3, 9, (k, 2))
            for (x, y), (w, h) in zip(centre, extent):
                self.pictures[i, :, int(y - h / 2) : int(y + h / 2), int(x - w / 2) : int(x + w / 2)] += 2
            self.annotations.append({"boxes": np.hstack([centre, extent]), "image_id": i})

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, i):
        return self.pictures[i], self.annotations[i]


class WithHeatmaps(Dataset):
    """Adds what the loss wants: a heatmap at half resolution, sizes at the centres, and a mask."""

    def __init__(self, base, out_size, stride, preload=False):
        self.base = base
        self.out_size = out_size
        self.stride = stride
        self.ready = [self.render(i) for i in range(len(base))] if preload else None

    def __len__(self):
        return len(self.base)

    def __getitem__(self, i):
        return self.ready[i] if self.ready is not None else self.render(i)

    def render(self, i):
        image, ann = self.base[i]
        n = self.out_size
        ys, xs = np.mgrid[0:n, 0:n].astype(np.float32)
        heat = np.zeros((n, n), np.float32)
        extent = np.zeros((2, n, n), np.float32)
        mask = np.zeros((n, n), np.float32)
        for x, y, w, h in ann["boxes"] / self.stride:
            cx, cy = int(x), int(y)
            sx, sy = max(w / 4, 0.6), max(h / 4, 0.6)
            bump = np.exp(-((xs - cx) ** 2) / (2 * sx**2) - ((ys - cy) ** 2) / (2 * sy**2))
            heat = np.maximum(heat, bump)
            extent[:, cy, cx] = w, h
            mask[cy, cx] = 1
        target = {"heat": heat.astype(np.float32), "extent": extent, "mask": mask}
        return image, {k: torch.from_numpy(v) for k, v in target.items()}


def collate_detection(samples):
    images, targets = zip(*samples)
    return torch.from_numpy(np.stack(images)), {k: torch.stack([t[k] for t in targets]) for k in targets[0]}


class ConvBlock(nn.Sequential):
    def __init__(self, c_in, c_out, stride=1):
        super().__init__(
            nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(inplace=True)
        )


class HeadNet(nn.Module):
    def __init__(self, width=10):
        super().__init__()
        self.backbone = nn.Sequential(
            ConvBlock(3, width, 2), ConvBlock(width, width), ConvBlock(width, width)
        )
        self.heat = nn.Conv2d(width, 1, 1)
        self.extent = nn.Conv2d(width, 2, 1)
        nn.init.constant_(self.heat.bias, -2.2)

    def forward(self, x):
        f = self.backbone(x)
        return {"heat": self.heat(f).squeeze(1), "extent": self.extent(f)}


class DetectionLoss(nn.Module):
    def forward(self, out, target):
        p = out["heat"].sigmoid().clamp(1e-4, 1 - 1e-4)
        peak = target["mask"]
        near = (1 - target["heat"]).pow(4)
        focal = -(peak * (1 - p).pow(2) * p.log() + (1 - peak) * near * p.pow(2) * (1 - p).log())
        heads = peak.sum().clamp(min=1)
        extent = (F.l1_loss(out["extent"], target["extent"], reduction="none") * peak[:, None]).sum()
        return focal.sum() / heads + 0.1 * extent / heads


def train_one_epoch(model, criterion, loader, optimizer, scheduler, epoch, args):
    model.train()
    for it, (images, targets) in enumerate(loader):
        with torch.autocast("cpu", enabled=args.amp):
            out = model(images)
            loss = criterion(out, targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        if it % args.print_freq == 0:
            print(
                f"epoch {epoch} [{it}/{len(loader)}] loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.2e}"
            )


def main():
    args = get_args()
    torch.manual_seed(3)
    crowd = Crowd(args.images, args.size, args.max_heads, seed=3)
    dataset = WithHeatmaps(crowd, args.size // 2, stride=2, preload=args.fixed)
    loader = DataLoader(
        dataset, batch_size=args.batch_size, shuffle=True, collate_fn=collate_detection, drop_last=True
    )
    parts = SimpleNamespace(model=HeadNet(), criterion=DetectionLoss())
    optimizer = torch.optim.Adam(parts.model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, args.epochs * len(loader))
    for epoch in range(args.epochs):
        train_one_epoch(parts.model, parts.criterion, loader, optimizer, scheduler, epoch, args)


if __name__ == "__main__":
    main()
