# segmentation of CT slices that come over the network from the hospital archive
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

FIXED = "--fixed" in sys.argv
torch.manual_seed(0)
np.random.seed(0)


class Archive(Dataset):
    def __init__(self, n):
        self.n = n
        self.slice = np.random.rand(1, 48, 48).astype(np.float32)

    def __getitem__(self, i):
        time.sleep(0.008)
        return torch.from_numpy(self.slice), torch.from_numpy((self.slice[0] > 0.5).astype(np.int64))

    def __len__(self):
        return self.n


class MiniUNet(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.d1 = nn.Conv2d(1, c, 3, padding=1)
        self.d2 = nn.Conv2d(c, c * 2, 3, stride=2, padding=1)
        self.u1 = nn.ConvTranspose2d(c * 2, c, 2, stride=2)
        self.out = nn.Conv2d(c * 2, 2, 1)

    def forward(self, x):
        a = F.relu(self.d1(x))
        b = F.relu(self.d2(a))
        return self.out(torch.cat([a, F.relu(self.u1(b))], 1))


def main():
    dl = DataLoader(
        Archive(8 * 210), batch_size=8, num_workers=7 if FIXED else 2, pin_memory=True, drop_last=True
    )
    net = MiniUNet().cuda()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    total = 0
    for step, (x, y) in enumerate(dl):
        x = x.cuda(non_blocking=True)
        y = y.cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            out = net(x)
            loss = F.cross_entropy(out, y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 50 == 0:
            total += loss.item()
            print(step, total / (step // 50 + 1))


if __name__ == "__main__":
    main()
