"""The first card is taken, so this one trains on cuda:1; spectrograms are made while the GPU waits."""

import argparse
import time

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

ap = argparse.ArgumentParser()
ap.add_argument("--gpu", type=int, default=1)
ap.add_argument("--fixed", action="store_true")
opt = ap.parse_args()
torch.manual_seed(4)
device = torch.device("cuda", opt.gpu)


class Clips(Dataset):
    def __init__(self, n):
        self.waves = torch.randn(64, 256)
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        time.sleep(0.0022)
        return self.waves[i % 64].view(1, 16, 16), torch.tensor(i % 8)


net = nn.Sequential(
    nn.Conv2d(1, 16, 3, 1, 1),
    nn.ReLU(),
    nn.Conv2d(16, 16, 3, 1, 1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(4096, 8),
)
net.to(device)
solver = optim.RMSprop(net.parameters(), lr=1e-4)
kwargs = {"num_workers": 4, "pin_memory": True} if opt.fixed else {"num_workers": 0}
for i, (clip, label) in enumerate(DataLoader(Clips(12 * 220), 12, shuffle=True, **kwargs)):
    clip = clip.to(device, non_blocking=True)
    label = label.to(device, non_blocking=True)
    with torch.autocast("cuda", dtype=torch.float16):
        logit = net(clip)
        loss = nn.functional.cross_entropy(logit, label)
    solver.zero_grad()
    loss.backward()
    solver.step()
    if (i + 1) % 100 == 0:
        print(i + 1, round(loss.item(), 3))
