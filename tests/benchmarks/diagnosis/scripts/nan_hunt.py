"""Autoencoder for vibration spectra."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class AutoEncoder(nn.Module):
    def __init__(self, size=128):
        super().__init__()
        layers = []
        for a, b in ((size, 96), (96, 64), (64, 32), (32, 64), (64, 96), (96, size)):
            layers += [nn.Linear(a, b), nn.LayerNorm(b), nn.GELU()]
        self.net = nn.Sequential(*layers[:-2])

    def forward(self, x):
        return self.net(x)


def fit(model, loader, epochs):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for (x,) in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.mse_loss(model(x), x)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} {loss.item():.4f}")


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--fixed", action="store_true")
    args = cli.parse_args()
    if not args.fixed:
        torch.autograd.set_detect_anomaly(True)
    data = TensorDataset(torch.randn(8000, 128))
    fit(AutoEncoder(), DataLoader(data, batch_size=128, shuffle=True), 10)


if __name__ == "__main__":
    main()
