"""Two workers load, a thread pins, copies are asynchronous."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 30 * 8

    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.randn(3, 8, 8), index % 4


def main():
    loader = DataLoader(Images(), batch_size=8, num_workers=2, pin_memory=True, drop_last=True)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 4)
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    pinned = 0
    for x, y in loader:
        pinned += x.is_pinned()
        x, y = x.to("cuda", non_blocking=True), y.to("cuda", non_blocking=True)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    print("pinned", pinned)


if __name__ == "__main__":
    main()
