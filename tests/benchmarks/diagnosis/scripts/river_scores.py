"""River levels with hydrologists' scores printed from every step."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def efficiency_metrics(predicted, observed):
    errors = [(p - o) ** 2 for p, o in zip(predicted, observed)]
    mean = sum(observed) / len(observed)
    spread = [(o - mean) ** 2 for o in observed]
    peaks = np.percentile(observed, [5, 50, 95])
    return 1 - sum(errors) / sum(spread), np.abs(np.percentile(predicted, [5, 50, 95]) - peaks).mean()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    every = 100 if parser.parse_args().fixed else 1
    model = nn.Sequential(nn.Linear(40, 96), nn.ReLU(), nn.Linear(96, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = TensorDataset(torch.randn(51200, 40), torch.rand(51200))
    step = 0
    for epoch in range(6):
        for rain, level in DataLoader(data, batch_size=1024, shuffle=True):
            output = model(rain).squeeze(1)
            loss = nn.functional.mse_loss(output, level)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                scores = efficiency_metrics(output.detach().numpy(), level.numpy())
            step += 1
        print(epoch, scores)
