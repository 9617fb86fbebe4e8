"""Bird songs by similarity: the triplet loss goes through the batch in Python."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def triplets_in_loops(e, labels, margin=0.2):
    losses = []
    n = len(labels)
    for i in range(n):
        for j in range(n):
            if i != j and labels[i] == labels[j]:
                k = (i + j) % n
                losses.append(F.relu((e[i] - e[j]).pow(2).sum() - (e[i] - e[k]).pow(2).sum() + margin))
    return torch.stack(losses).mean()


def triplets_at_once(e, labels, index, margin=0.2):
    i, j, k = index
    return F.relu((e[i] - e[j]).pow(2).sum(1) - (e[i] - e[k]).pow(2).sum(1) + margin).mean()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--fixed", action="store_true")
    fixed = ap.parse_args().fixed
    torch.manual_seed(4)
    labels = [i // 4 for i in range(16)]
    index = [(i, j, (i + j) % 16) for i in range(16) for j in range(16) if i != j and labels[i] == labels[j]]
    index = torch.tensor(index).t().cuda()
    net = nn.Sequential(nn.Linear(80, 120), nn.ReLU(), nn.Linear(120, 32)).cuda()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(180):
        songs = torch.randn(16, 80, device="cuda")
        e = F.normalize(net(songs), dim=1)
        loss = triplets_at_once(e, labels, index) if fixed else triplets_in_loops(e, labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("loss", loss.item())


if __name__ == "__main__":
    main()
