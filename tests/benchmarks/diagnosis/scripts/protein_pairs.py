"""Contrastive embedding of protein families, pair after pair."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def contrast(z, family):
    terms = []
    for i in range(len(z)):
        for j in range(i + 1, len(z)):
            distance = (z[i] - z[j]).pow(2).sum()
            terms.append(distance if family[i] == family[j] else torch.relu(1.0 - distance))
    return torch.stack(terms).mean()


def contrast_at_once(z, family):
    distance = (z[:, None] - z[None]).pow(2).sum(2)
    same = family[:, None] == family[None]
    upper = torch.triu(torch.ones_like(distance), 1) > 0
    return torch.where(same, distance, torch.relu(1.0 - distance))[upper].mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    criterion = contrast_at_once if parser.parse_args().fixed else contrast
    encoder = nn.Sequential(
        nn.Linear(400, 1200), nn.ReLU(), nn.Linear(1200, 1200), nn.ReLU(), nn.Linear(1200, 32)
    )
    data = TensorDataset(torch.randn(1440, 400), torch.randint(0, 6, (1440,)))
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.01)
    for epoch in range(3):
        for x, family in DataLoader(data, batch_size=12, shuffle=True):
            loss = criterion(encoder(x), family)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
