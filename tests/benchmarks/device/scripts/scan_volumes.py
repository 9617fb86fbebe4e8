"""Brain scans: whole volumes, straight from ordinary memory to the GPU."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Volumes(Dataset):
    """Two volumes of 1.3 MB make a batch; they are kept in memory."""

    def __init__(self, n):
        self.n = n
        self.volume = torch.zeros(5, 256, 256)

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        return self.volume, float(index % 2)


def main(fixed):
    torch.manual_seed(0)
    if fixed:
        loader = DataLoader(Volumes(600), batch_size=2, num_workers=2, pin_memory=True)
    else:
        loader = DataLoader(Volumes(600), batch_size=2, num_workers=2)
    net = nn.Sequential(
        nn.Conv2d(5, 32, 5, stride=4),
        nn.ReLU(),
        nn.Conv2d(32, 32, 5, stride=4),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(512, 1),
    ).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    for i, (scan, sick) in enumerate(loader):
        scan = scan.to("cuda", non_blocking=fixed)
        sick = sick.float().to("cuda", non_blocking=fixed)
        with torch.autocast("cuda", torch.bfloat16):
            logits = net(scan).squeeze(1)
        loss = nn.functional.binary_cross_entropy_with_logits(logits.float(), sick)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print(i, loss.item())


if __name__ == "__main__":
    main("--fixed" in sys.argv[1:])
