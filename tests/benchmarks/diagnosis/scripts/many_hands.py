"""Language tags from character counts with ten compute threads."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    torch.set_num_threads(2 if parser.parse_args().fixed else 10)
    model = nn.Sequential(nn.Linear(400, 500), nn.ReLU(), nn.Linear(500, 500), nn.ReLU(), nn.Linear(500, 20))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = TensorDataset(torch.rand(9600, 400), torch.randint(0, 20, (9600,)))
    for epoch in range(2):
        for counts, tag in DataLoader(data, batch_size=96, shuffle=True):
            loss = nn.functional.cross_entropy(model(counts), tag)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
