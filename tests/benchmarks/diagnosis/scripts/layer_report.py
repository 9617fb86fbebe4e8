"""Credit network that prints a line about each layer after every step."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def report(step, model, loss):
    print(f"step {step} loss {loss:.6f}", flush=True)
    for name, parameter in model.named_parameters():
        print(f"   {name:<12} mean {parameter.mean():+.5f} max {parameter.abs().max():.5f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    every = 100 if parser.parse_args().fixed else 1
    model = nn.Sequential(nn.Linear(90, 500), nn.ReLU(), nn.Linear(500, 500), nn.ReLU(), nn.Linear(500, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    data = TensorDataset(torch.randn(12000, 90), torch.randn(12000, 1))
    step = 0
    for epoch in range(6):
        for x, y in DataLoader(data, batch_size=60, shuffle=True):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                report(step, model, loss.item())
            step += 1
