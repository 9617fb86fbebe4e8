"""A residual network in the style of timm's train.py: meters, an averaged copy of the weights, a log line
every so many batches."""

import argparse
import copy
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, width: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.short = nn.Conv2d(width, out, 1, stride, bias=False) if stride > 1 or width != out else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return torch.relu(y + (x if self.short is None else self.short(x)))


class Resnet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 1, 1)
        plan = ((16, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1))
        self.blocks = nn.Sequential(*(Block(*one) for one in plan))
        self.head = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(torch.relu(self.stem(x))).mean((2, 3)))


class AverageMeter:
    def __init__(self) -> None:
        self.sum = self.count = 0.0

    def update(self, value: float, n: int = 1) -> None:
        self.sum += value * n
        self.count += n

    @property
    def avg(self) -> float:
        return self.sum / max(1, self.count)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--pictures", type=int, default=2048)
    args = parser.parse_args()
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(args.pictures, 3, 32, 32), torch.randint(0, 10, (args.pictures,)))
    loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=2, drop_last=True)
    model = Resnet()
    average = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=2e-5)
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)
    for epoch in range(args.epochs):
        losses, batch_time, end = AverageMeter(), AverageMeter(), time.time()
        for index, (x, target) in enumerate(loader):
            loss = loss_fn(model(x), target)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            with torch.no_grad():
                for ours, new in zip(average.parameters(), model.parameters(), strict=True):
                    ours.lerp_(new, 0.01)
            batch_time.update(time.time() - end)
            end = time.time()
            if index % 20 == 0:
                losses.update(loss.item(), x.size(0))
                print(f"train {epoch} [{index}/{len(loader)}] loss {losses.avg:.3f} {batch_time.avg:.3f} s")


if __name__ == "__main__":
    main()
