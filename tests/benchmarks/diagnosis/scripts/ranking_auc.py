"""Lead scoring that prints its progress from an AUC computed in every step."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def roc_auc(scores, labels):
    ordered = sorted(zip(scores.tolist(), labels.tolist()))
    positives = sum(label for _, label in ordered)
    negatives = len(ordered) - positives
    ranks = sum(rank + 1 for rank, (_, label) in enumerate(ordered) if label)
    return (ranks - positives * (positives + 1) / 2) / max(1, positives * negatives)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    every = 50 if parser.parse_args().fixed else 1
    model = nn.Sequential(nn.Linear(96, 64), nn.Tanh(), nn.Linear(64, 1))
    x = torch.randn(40960, 96)
    data = TensorDataset(x, (x[:, 0] > 0).long())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    curve, step = [], 0
    for epoch in range(5):
        for rows, bought in DataLoader(data, batch_size=512, shuffle=True):
            logits = model(rows).squeeze(1)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, bought.float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                curve.append(roc_auc(logits.detach(), bought))
            step += 1
        print(epoch, curve[-1])


if __name__ == "__main__":
    main()
