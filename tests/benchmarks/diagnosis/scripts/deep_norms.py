"""Deep residual MLP; the authors follow the norm of every gradient."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Linear(width, width)
        self.b = nn.Linear(width, width)

    def forward(self, x):
        return x + self.b(torch.relu(self.a(x)))


def gradient_statistics(model):
    stats = {}
    for name, parameter in model.named_parameters():
        gradient = parameter.grad
        stats[name] = (
            gradient.norm().item(),
            gradient.abs().max().item(),
            gradient.std().item(),
            gradient.mean().item(),
        )
    return stats


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    every = 100 if parser.parse_args().fixed else 1
    model = nn.Sequential(nn.Linear(20, 64), *[Block(64) for _ in range(16)], nn.Linear(64, 1))
    data = TensorDataset(torch.randn(6400, 20), torch.randn(6400, 1))
    loader = DataLoader(data, batch_size=64, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    history, step = [], 0
    for _ in range(5):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            if step % every == 0:
                history.append(gradient_statistics(model))
            optimizer.step()
            step += 1
    print(len(history), "records, loss", loss.item())


if __name__ == "__main__":
    main()
