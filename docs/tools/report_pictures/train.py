"""A small classifier of made-up pictures with augmentation, validation and checkpoints."""

import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import avg_pool2d
from torch.utils.data import DataLoader, Dataset, TensorDataset


def blurred(x: torch.Tensor) -> torch.Tensor:
    x = x + 0.01 * torch.randn_like(x)
    for _ in range(6):
        x = avg_pool2d(x, 3, 1, 1)
    return x


def pictures(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(count, 3, 16, 16)
    return x, (x.mean((1, 2, 3)) > 0).long()


class Augmented(Dataset):
    def __init__(self, count: int) -> None:
        self.x, self.y = pictures(count)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, at: int) -> tuple[torch.Tensor, torch.Tensor]:
        return blurred(self.x[at][None])[0], self.y[at]


def validate(model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train()
    return right / 512


def prepared(x: torch.Tensor) -> torch.Tensor:
    return x


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 2),
    )  # fmt: skip
    train = DataLoader(Augmented(2048), batch_size=64, shuffle=True)
    valid = DataLoader(TensorDataset(*pictures(512)), batch_size=64)
    optimizer, criterion = torch.optim.AdamW(model.parameters(), lr=1e-3), nn.CrossEntropyLoss()
    for _ in range(16):
        for x, y in train:
            optimizer.zero_grad()
            loss = criterion(model(prepared(x)), y)
            loss.backward()
            optimizer.step()
        print(loss.item(), validate(model, valid))
        torch.save(model.state_dict(), Path(tempfile.gettempdir()) / "pictures.pt")
