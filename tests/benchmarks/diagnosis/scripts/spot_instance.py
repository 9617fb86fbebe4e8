"""Autoencoder on a machine that may go away: a full checkpoint every ten steps."""

import argparse
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def save(path, model, optimizer, step):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(state, path.with_suffix(".new"))
    path.with_suffix(".new").rename(path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    every = 150 if parser.parse_args().fixed else 10
    widths = [784, 900, 500, 900, 784]
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=True)
    data = TensorDataset(torch.rand(6400, 784))
    loader = DataLoader(data, batch_size=64, shuffle=True)
    folder = tempfile.TemporaryDirectory()
    path, step = Path(folder.name) / "model.pt", 0
    for epoch in range(3):
        for (x,) in loader:
            loss = nn.functional.mse_loss(model(x), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % every == 0:
                save(path, model, optimizer, step)
        print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
