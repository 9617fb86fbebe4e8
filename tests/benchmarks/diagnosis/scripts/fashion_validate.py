"""Image classifier with a close eye on validation accuracy."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Trainer:
    def __init__(self, model, train_loader, valid_loader, validate_every):
        self.model = model
        self.train_loader = train_loader
        self.valid_loader = valid_loader
        self.validate_every = validate_every
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        self.criterion = nn.CrossEntropyLoss()
        self.step = 0
        self.best = 0.0

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        correct = torch.zeros((), dtype=torch.long)
        for images, labels in self.valid_loader:
            correct += (self.model(images).argmax(1) == labels).sum()
        self.model.train()
        self.best = max(self.best, correct.item() / len(self.valid_loader.dataset))

    def fit(self, epochs):
        for _ in range(epochs):
            for images, labels in self.train_loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(images), labels)
                loss.backward()
                self.optimizer.step()
                self.step += 1
                if self.step % self.validate_every == 0:
                    self.validate()
            print(f"step {self.step} loss {loss.item():.3f} best {self.best:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    data = TensorDataset(torch.randn(5000, 1, 20, 20), torch.randint(0, 10, (5000,)))
    train, valid = random_split(data, [4000, 1000])
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12 * 81, 10)
    )
    Trainer(
        model,
        DataLoader(train, batch_size=64, shuffle=True),
        DataLoader(valid, batch_size=200),
        500 if args.fixed else 8,
    ).fit(4)
