"""Plain image classifier with a DataLoader and two workers."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.classifier = nn.Linear(48 * 64, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def train_one_epoch(model, loader, optimizer, epoch):
    model.train()
    for i, (images, targets) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), targets)
        loss.backward()
        optimizer.step()
        if i % 50 == 0:
            print(f"epoch {epoch} batch {i}/{len(loader)} loss {loss.item():.3f}")


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    return sum((model(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)


if __name__ == "__main__":
    train_set = TensorDataset(torch.randn(2048, 3, 32, 32), torch.randint(0, 10, (2048,)))
    test_set = TensorDataset(torch.randn(256, 3, 32, 32), torch.randint(0, 10, (256,)))
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True, num_workers=1, persistent_workers=True)
    test_loader = DataLoader(test_set, batch_size=128)
    net = ConvNet()
    sgd = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(3):
        train_one_epoch(net, train_loader, sgd, epoch)
        print("accuracy", evaluate(net, test_loader))
