"""Sequence tagging with an LSTM written cell by cell."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class CellTagger(nn.Module):
    def __init__(self, features, hidden, tags):
        super().__init__()
        self.hidden = hidden
        self.cell = nn.LSTMCell(features, hidden)
        self.out = nn.Linear(hidden, tags)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.hidden)
        c = x.new_zeros(x.shape[0], self.hidden)
        outputs = []
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))
            outputs.append(h)
        return self.out(torch.stack(outputs, dim=1))


class FusedTagger(nn.Module):
    def __init__(self, features, hidden, tags):
        super().__init__()
        self.rnn = nn.LSTM(features, hidden, batch_first=True)
        self.out = nn.Linear(hidden, tags)

    def forward(self, x):
        return self.out(self.rnn(x)[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    model = (FusedTagger if parser.parse_args().fixed else CellTagger)(16, 48, 5)
    x, y = torch.randn(1280, 80, 16), torch.randint(0, 5, (1280, 80))
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(6):
        for features, tags in loader:
            loss = nn.functional.cross_entropy(model(features).flatten(0, 1), tags.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
