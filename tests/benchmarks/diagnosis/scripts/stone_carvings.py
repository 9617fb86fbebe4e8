"""Carvings photographed from afar, made four times as sharp: residual blocks, patches from a folder of PNGs."""

import argparse
import random
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

DATASETS, ARCHS = {}, {}


def register(table):
    def keep(cls):
        table[cls.__name__] = cls
        return cls

    return keep


def photograph(folder, count, size, seed):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:size, 0:size] / size
    for n in range(count):
        freq, phase = rng.uniform(8, 60, (3, 2)), rng.uniform(0, 6, 3)
        waves = [np.sin(a * x + b * y + p) + np.sin(b * x - a * y) for (a, b), p in zip(freq, phase)]
        picture = 128 + 45 * np.stack(waves, -1) + rng.normal(0, 6, (size, size, 3))
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(folder / f"{n:04}.png", compress_level=1)


def paired_random_crop(gt, patch):
    top, left = random.randint(0, gt.shape[0] - patch), random.randint(0, gt.shape[1] - patch)
    return gt[top : top + patch, left : left + patch]


def augment(image):
    if random.random() < 0.5:
        image = image[:, ::-1]
    if random.random() < 0.5:
        image = image[::-1]
    return image.transpose(1, 0, 2) if random.random() < 0.5 else image


def to_tensor(image):
    return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1))).float() / 255


@register(DATASETS)
class PairedImageDataset(Dataset):
    def __init__(self, opt):
        self.opt = opt
        self.paths = sorted(Path(opt["dataroot_gt"]).glob("*.png"))
        self.backend = (
            {path: self.decode(path) for path in self.paths} if opt["io_backend"] == "memory" else {}
        )

    @staticmethod
    def decode(path):
        return np.asarray(Image.open(path).convert("RGB"))

    def __len__(self):
        return len(self.paths) * self.opt["enlarge"]

    def __getitem__(self, index):
        path = self.paths[index % len(self.paths)]
        gt = self.backend[path] if path in self.backend else self.decode(path)
        gt = augment(paired_random_crop(gt, self.opt["gt_size"]))
        small = self.opt["gt_size"] // self.opt["scale"]
        lq = np.asarray(Image.fromarray(np.ascontiguousarray(gt)).resize((small, small), Image.BICUBIC))
        return {"lq": to_tensor(lq), "gt": to_tensor(gt)}


class ResidualBlockNoBN(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, 1, 1), nn.ReLU(inplace=True), nn.Conv2d(width, width, 3, 1, 1)
        )

    def forward(self, x):
        return x + 0.2 * self.body(x)


@register(ARCHS)
class SmallEDSR(nn.Module):
    def __init__(self, num_feat, num_block, scale):
        super().__init__()
        self.conv_first = nn.Conv2d(3, num_feat, 3, 1, 1)
        self.body = nn.Sequential(*(ResidualBlockNoBN(num_feat) for _ in range(num_block)))
        self.upsample = nn.Sequential(
            nn.Conv2d(num_feat, 3 * scale**2, 3, 1, 1),
            nn.PixelShuffle(scale),
        )
        self.scale = scale

    def forward(self, x):
        features = self.conv_first(x)
        base = nn.functional.interpolate(x, scale_factor=self.scale, mode="bilinear", align_corners=False)
        return base + self.upsample(features + self.body(features))


class CharbonnierLoss(nn.Module):
    def __init__(self, eps=1e-6):
        super().__init__()
        self.eps = eps

    def forward(self, pred, target):
        return torch.sqrt((pred - target) ** 2 + self.eps).mean()


class SRModel:
    def __init__(self, opt):
        net = dict(opt["network_g"])
        self.net_g = ARCHS[net.pop("type")](**net)
        self.cri_pix = CharbonnierLoss()
        self.optimizer_g = torch.optim.Adam(self.net_g.parameters(), fused=True, **opt["optim_g"])
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer_g, opt["total_iter"])

    def optimize_parameters(self, data):
        self.optimizer_g.zero_grad()
        self.l_pix = self.cri_pix(self.net_g(data["lq"]), data["gt"])
        self.l_pix.backward()
        self.optimizer_g.step()
        self.scheduler.step()


def train_pipeline(opt):
    torch.manual_seed(opt["manual_seed"])
    random.seed(opt["manual_seed"])
    data = opt["datasets"]
    loader = DataLoader(
        DATASETS[data["type"]](data),
        batch_size=data["batch_size_per_gpu"],
        shuffle=True,
        drop_last=True,
        num_workers=data["num_worker_per_gpu"],
        persistent_workers=True,
    )
    model = SRModel(opt)
    current_iter, started = 0, time.time()
    while current_iter < opt["total_iter"]:
        for batch in loader:
            current_iter += 1
            model.optimize_parameters(batch)
            if current_iter % opt["print_freq"] == 0:
                spent = (time.time() - started) / current_iter
                print(f"[iter {current_iter:4d}] time: {spent:.3f} l_pix: {model.l_pix.item():.4f}")
            if current_iter == opt["total_iter"]:
                break


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--total_iter", type=int, default=170)
    parser.add_argument("--fixed", action="store_true", help="keep the decoded pictures in memory")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        photograph(Path(folder), 12, 400, 12)
        train_pipeline(
            {
                "manual_seed": 12,
                "total_iter": args.total_iter,
                "print_freq": 20,
                "network_g": {"type": "SmallEDSR", "num_feat": 32, "num_block": 4, "scale": 4},
                "optim_g": {"lr": 4e-4, "betas": (0.9, 0.99)},
                "datasets": {
                    "type": "PairedImageDataset",
                    "dataroot_gt": folder,
                    "io_backend": "memory" if args.fixed else "disk",
                    "gt_size": 96,
                    "scale": 4,
                    "enlarge": 100,
                    "batch_size_per_gpu": 12,
                    "num_worker_per_gpu": 1,
                },
            }
        )
