"""Click-through prediction on rows that are already tensors."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, count):
        self.dense = torch.randn(count, 24)
        self.clicked = (self.dense[:, 0] > 0).float()

    def __len__(self):
        return len(self.dense)

    def __getitem__(self, i):
        return self.dense[i], self.clicked[i]


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--fixed", action="store_true")
    cli.add_argument("--workers", type=int, default=8)
    args = cli.parse_args()
    workers = 0 if args.fixed else args.workers
    loader = DataLoader(
        Rows(16000), batch_size=32, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loss_fn = nn.BCEWithLogitsLoss()
    for epoch in range(5):
        running = torch.zeros(())
        for dense, clicked in loader:
            loss = loss_fn(model(dense).squeeze(-1), clicked)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.detach()
        print(f"{epoch}: {running.item() / len(loader):.4f}")
