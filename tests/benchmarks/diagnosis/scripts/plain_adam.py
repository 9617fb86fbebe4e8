"""Sound events with a wide dense model and the optimizer as it comes."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    model = nn.Sequential(nn.Linear(300, 900), nn.ReLU(), nn.Linear(900, 900), nn.ReLU(), nn.Linear(900, 40))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=parser.parse_args().fixed)
    data = TensorDataset(torch.randn(6400, 300), torch.randint(0, 40, (6400,)))
    for epoch in range(2):
        for sound, event in DataLoader(data, batch_size=32, shuffle=True):
            loss = nn.functional.cross_entropy(model(sound), event)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
