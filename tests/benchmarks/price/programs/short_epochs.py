"""Short epochs over a small data set: the DataLoader starts its workers anew in each of them."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Signals(Dataset):
    def __init__(self, count: int) -> None:
        self.raw = torch.randn(count, 400, generator=torch.Generator().manual_seed(3))

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        signal = self.raw[index] + 0.01 * torch.randn(400)
        return torch.fft.rfft(signal).abs()[:128], int(signal.sum() > 0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(Signals(320), batch_size=32, shuffle=True, num_workers=2)
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(args.epochs):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 20 == 0:
            print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
