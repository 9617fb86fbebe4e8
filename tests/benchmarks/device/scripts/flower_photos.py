"""Fine-grained flowers: a small convolutional network on photos that are read one by one."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
parser.add_argument("--epochs", type=int, default=4)
args = parser.parse_args()
torch.manual_seed(7)


class Flowers(Dataset):
    def __init__(self, count=16 * 55):
        self.count = count
        self.photo = torch.rand(3, 32, 32)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(0.0018)  # reading and decoding a JPEG
        return self.photo.roll(index % 32, dims=2), index % 17


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Linear(64 * 8 * 8, 17)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
workers = dict(num_workers=3, persistent_workers=True, pin_memory=True) if args.fixed else {}
loader = DataLoader(Flowers(), batch_size=16, shuffle=True, **workers)
model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
criterion = nn.CrossEntropyLoss()

for epoch in range(args.epochs):
    running = torch.zeros((), device=device)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        running += loss.detach()
    print(f"epoch {epoch + 1} loss {running.item() / len(loader):.3f}")
