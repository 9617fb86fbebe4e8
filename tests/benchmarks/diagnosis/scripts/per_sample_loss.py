"""Ranking loss computed pair by pair, the way it is written in the paper."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def pairwise_loss(scores, labels):
    total = scores.new_zeros(())
    for i in range(len(scores)):
        for j in range(len(scores)):
            if labels[i] > labels[j]:
                total = total + torch.relu(1 - (scores[i] - scores[j]))
    return total / len(scores) ** 2


def pairwise_loss_matrix(scores, labels):
    difference = scores[:, None] - scores[None, :]
    return (torch.relu(1 - difference) * (labels[:, None] > labels[None, :])).sum() / len(scores) ** 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    criterion = pairwise_loss_matrix if parser.parse_args().fixed else pairwise_loss
    model = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 1))
    loader = DataLoader(TensorDataset(torch.randn(3200, 40), torch.rand(3200)), batch_size=32)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        for x, y in loader:
            loss = criterion(model(x).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
