"""Crop yield; the whole validation set again after every tenth step."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

args = argparse.ArgumentParser()
args.add_argument("--validate-every", type=int, default=10)
args.add_argument("--fixed", action="store_true")
args = args.parse_args()
every = 100 if args.fixed else args.validate_every
torch.manual_seed(33)


def made(n):
    x = torch.randn(n, 20)
    return TensorDataset(x, x[:, :3].sum(1, keepdim=True))


train = DataLoader(made(32 * 420), batch_size=32, shuffle=True, num_workers=1, pin_memory=True)
valid = DataLoader(made(64 * 16), batch_size=64, pin_memory=True)
net = nn.Sequential(nn.Linear(20, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 1)).cuda()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)


@torch.no_grad()
def validate():
    net.eval()
    total = torch.zeros((), device="cuda")
    for x, y in valid:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            total += (net(x.cuda(non_blocking=True)) - y.cuda(non_blocking=True)).pow(2).mean()
    net.train()
    return total.item() / len(valid)


best = float("inf")
for step, (x, y) in enumerate(train, 1):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = (net(x.cuda(non_blocking=True)) - y.cuda(non_blocking=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % every == 0:
        best = min(best, validate())
print("best", best)
