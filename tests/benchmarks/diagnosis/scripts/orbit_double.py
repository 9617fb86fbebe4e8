"""Orbit propagation with a recurrent net in double precision."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Orbit(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(6, 96, batch_first=True)
        self.out = nn.Linear(96, 6)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    torch.set_default_dtype(torch.float32 if parser.parse_args().fixed else torch.float64)
    model = Orbit()
    data = TensorDataset(torch.randn(1920, 30, 6), torch.randn(1920, 6))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for epoch in range(4):
        for path, state in DataLoader(data, batch_size=32, shuffle=True):
            loss = nn.functional.mse_loss(model(path), state)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
