"""Demand forecast refitted in short passes, each with a fresh set of loader processes."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Demand(Dataset):
    def __init__(self, days):
        self.sales = np.random.default_rng(2).poisson(20, size=(days, 60)).astype(np.float32)

    def __len__(self):
        return len(self.sales)

    def __getitem__(self, day):
        row = np.log1p(self.sales[day])
        return torch.from_numpy(row[:-1]), torch.tensor(row[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    keep = parser.parse_args().fixed
    loader = DataLoader(Demand(1200), batch_size=40, shuffle=True, num_workers=1, persistent_workers=keep)
    model = nn.Sequential(
        nn.Linear(59, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for pass_number in range(14):
        for history, target in loader:
            loss = nn.functional.mse_loss(model(history).squeeze(1), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(pass_number, loss.item())


if __name__ == "__main__":
    main()
