"""Wide regressor with a moving average of its weights, renewed through state dicts."""

import argparse
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Average:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = copy.deepcopy(model.state_dict())

    def update_copy(self, model):
        current = copy.deepcopy(model.state_dict())
        self.shadow = {
            name: self.decay * self.shadow[name] + (1 - self.decay) * value for name, value in current.items()
        }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    every = 50 if parser.parse_args().fixed else 1
    model = nn.Sequential(nn.Linear(128, 640), nn.SiLU(), nn.Linear(640, 640), nn.SiLU(), nn.Linear(640, 4))
    average = Average(model, 0.99)
    data = TensorDataset(torch.randn(8000, 128), torch.randn(8000, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    step = 0
    for epoch in range(5):
        for x, y in DataLoader(data, batch_size=80, shuffle=True):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % every == 0:
                average.update_copy(model)
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
