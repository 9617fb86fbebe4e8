"""A small classifier of made-up pictures with augmentation, validation and checkpoints: ``train.py WORKERS``."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import avg_pool2d
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, count: int) -> None:
        self.x = torch.randn(count, 3, 32, 32)
        self.y = (self.x.mean((1, 2, 3)) > 0).long()

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, at: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.x[at]
        for _ in range(3):
            x = avg_pool2d(x[None], 3, 1, 1)[0] + 0.01 * torch.randn_like(x)
        return x, self.y[at]


def validate(model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train()
    return right / 512


if __name__ == "__main__":
    workers = int(sys.argv[1])
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 2),
    )  # fmt: skip
    train = DataLoader(
        Pictures(2048), batch_size=64, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    valid = DataLoader(Pictures(512), batch_size=64)
    optimizer, criterion = torch.optim.AdamW(model.parameters(), lr=1e-3), nn.CrossEntropyLoss()
    for _ in range(5):
        for x, y in train:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        print(loss.item(), validate(model, valid))
        torch.save(model.state_dict(), Path(tempfile.gettempdir()) / "pictures.pt")
