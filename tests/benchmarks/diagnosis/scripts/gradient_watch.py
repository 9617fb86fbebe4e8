"""Narrow deep network; the norm of every gradient goes into a table."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def grad_norms(model):
    return [parameter.grad.norm(2).item() for parameter in model.parameters()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    every = 100 if parser.parse_args().fixed else 1
    layers = []
    for _ in range(30):
        layers += [nn.Linear(40, 40), nn.Tanh()]
    model = nn.Sequential(*layers, nn.Linear(40, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data, table, step = TensorDataset(torch.randn(4000, 40), torch.randn(4000, 1)), [], 0
    for epoch in range(6):
        for x, y in DataLoader(data, batch_size=40, shuffle=True):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            if step % every == 0:
                table.append(grad_norms(model))
            optimizer.step()
            step += 1
        print(epoch, loss.item(), len(table))
