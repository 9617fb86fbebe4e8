"""Next-day move from price bars; the indicators are worked out for each sample."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def indicators(prices, span=10):
    values = prices.tolist()
    average, strength = [], []
    for at in range(span, len(values)):
        window = values[at - span : at]
        average.append(sum(window) / span)
        gains = [max(0.0, b - a) for a, b in zip(window, window[1:])]
        losses = [max(0.0, a - b) for a, b in zip(window, window[1:])]
        strength.append(sum(gains) / (sum(losses) + 1e-6))
    return torch.tensor(average + strength)


class Bars(Dataset):
    def __init__(self, count, ahead):
        self.prices = 100 + torch.randn(count, 50).cumsum(1)
        self.moves = (torch.rand(count) > 0.5).float()
        self.known = [indicators(row) for row in self.prices] if ahead else None

    def __len__(self):
        return len(self.prices)

    def __getitem__(self, day):
        features = indicators(self.prices[day]) if self.known is None else self.known[day]
        return features, self.moves[day]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    loader = DataLoader(Bars(1600, parser.parse_args().fixed), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(80, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(6):
        for features, move in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(features).squeeze(1), move)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
