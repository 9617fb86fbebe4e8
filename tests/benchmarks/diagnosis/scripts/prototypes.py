"""Prototype classifier: the distance of every sample to its class centre, one after another."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def margin_loss(embedded, labels, centres):
    losses = []
    for vector, label in zip(embedded, labels):
        own = (vector - centres[label]).pow(2).sum()
        others = (vector - centres).pow(2).sum(dim=1)
        losses.append(torch.clamp(own - others.mean() + 1.0, min=0))
    return torch.stack(losses).mean()


def margin_loss_together(embedded, labels, centres):
    distances = (embedded[:, None] - centres[None]).pow(2).sum(dim=2)
    own = distances.gather(1, labels[:, None]).squeeze(1)
    return torch.clamp(own - distances.mean(dim=1) + 1.0, min=0).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    criterion = margin_loss_together if parser.parse_args().fixed else margin_loss
    encoder = nn.Sequential(
        nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 48)
    )
    centres = nn.Parameter(torch.randn(20, 48))
    data = TensorDataset(torch.randn(3200, 512), torch.randint(0, 20, (3200,)))
    optimizer = torch.optim.SGD([*encoder.parameters(), centres], lr=0.01)
    for epoch in range(4):
        for x, y in DataLoader(data, batch_size=32, shuffle=True):
            loss = criterion(encoder(x), y, centres)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
