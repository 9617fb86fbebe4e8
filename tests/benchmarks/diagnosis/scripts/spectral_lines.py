"""Redshift from stellar spectra, kept in the double precision of the survey's files."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SpectrumNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, 24, 9, stride=2), nn.ELU(), nn.Conv1d(24, 48, 9, stride=2), nn.ELU()
        )
        self.head = nn.Linear(48, 1)

    def forward(self, flux):
        return self.head(self.body(flux.unsqueeze(1)).mean(-1)).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    kind = torch.float32 if parser.parse_args().fixed else torch.float64
    rng = np.random.default_rng(11)
    flux, redshift = rng.normal(size=(1600, 600)), rng.uniform(0, 2, size=1600)
    data = TensorDataset(torch.as_tensor(flux, dtype=kind), torch.as_tensor(redshift, dtype=kind))
    loader = DataLoader(data, batch_size=32, shuffle=True)
    model = SpectrumNet().to(kind)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        for flux, redshift in loader:
            loss = nn.functional.smooth_l1_loss(model(flux), redshift)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
