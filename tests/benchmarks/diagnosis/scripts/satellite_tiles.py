"""Land use from small tiles; the held-out tiles are looked at every twenty steps."""

import sys

import torch
import torch.nn as nn

EVERY = 400 if "--fixed" in sys.argv else 20


def block(a, b):
    return nn.Sequential(
        nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True), nn.MaxPool2d(2)
    )


class Tiles(nn.Module):
    def __init__(self, classes=9):
        super().__init__()
        self.features = nn.Sequential(block(4, 24), block(24, 48), block(48, 64))
        self.classifier = nn.Linear(64 * 9, classes)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def accuracy(model, tiles, use):
    model.eval()
    hits = 0
    with torch.inference_mode():
        for start in range(0, len(tiles), 128):
            hits += int((model(tiles[start : start + 128]).argmax(1) == use[start : start + 128]).sum())
    model.train()
    return hits / len(tiles)


torch.manual_seed(3)
X, Y = torch.randn(2000, 4, 24, 24), torch.randint(9, (2000,))
VX, VY = torch.randn(768, 4, 24, 24), torch.randint(9, (768,))
model = Tiles()
opt = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9, nesterov=True)
history = []
for step in range(400):
    rows = torch.randint(0, 2000, (48,))
    loss = nn.functional.cross_entropy(model(X[rows]), Y[rows])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if (step + 1) % EVERY == 0:
        history.append(accuracy(model, VX, VY))
print(history[-1])
