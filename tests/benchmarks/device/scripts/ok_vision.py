"""Satellite tiles: workers, pinned memory, mixed precision, everything by the book."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.backends.cudnn.benchmark = True


class Tiles(Dataset):
    def __init__(self, n):
        self.tile = torch.rand(3, 32, 32)
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        time.sleep(0.001)
        return self.tile, i % 9


def block(a, b):
    return nn.Sequential(
        nn.Conv2d(a, b, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True)
    )


def main():
    loader = DataLoader(
        Tiles(16 * 240), 16, shuffle=True, num_workers=2, pin_memory=True, persistent_workers=True
    )
    model = nn.Sequential(
        block(3, 32), block(32, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 9)
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for step, (tile, kind) in enumerate(loader):
        tile, kind = tile.cuda(non_blocking=True), kind.cuda(non_blocking=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = nn.functional.cross_entropy(model(tile), kind)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 80 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
