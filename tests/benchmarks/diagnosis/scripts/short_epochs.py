"""Few-shot episodes: many short epochs over a small support set."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build_loader(data, persistent):
    return DataLoader(data, batch_size=40, shuffle=True, num_workers=2, persistent_workers=persistent)


def main(fixed):
    x = torch.randn(400, 1, 28, 28)
    y = torch.randint(0, 5, (400,))
    loader = build_loader(TensorDataset(x, y), fixed)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 5, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.LazyLinear(5),
    )
    model(x[:2])
    optimizer = torch.optim.Adam(model.parameters())
    for episode in range(40):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        if episode % 10 == 0:
            print(f"episode {episode} loss {loss.item():.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fixed", action="store_true")
    main(parser.parse_args().fixed)
