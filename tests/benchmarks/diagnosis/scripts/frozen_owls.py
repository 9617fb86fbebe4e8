"""Which owl is calling: a network that knows sounds already, and a new last layer for nine owls (from a notebook)."""

# %%
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

FIXED = "--fixed" in sys.argv
torch.manual_seed(4)

# %% spectrograms of calls
owls = torch.randint(9, (1600,))
pitch = torch.linspace(0, 1, 40)[None, :, None]
beat = torch.linspace(0, 1, 64)[None, None, :]
calls = torch.exp(-((pitch - owls[:, None, None] / 10 - 0.05) ** 2) * 90) * (
    1 + torch.sin(beat * (9 + owls[:, None, None]))
)
calls = (calls + 0.3 * torch.randn(1600, 40, 64))[:, None]
train_set, test_set = random_split(TensorDataset(calls, owls), [1400, 200])
train_loader = DataLoader(train_set, batch_size=20, shuffle=True)
test_loader = DataLoader(test_set, batch_size=100)


# %% the network; its weights would come from a hub
class SoundNet(nn.Module):
    def __init__(self, classes=50):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(48, 96, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        )  # fmt: skip
        self.fc = nn.Linear(96, classes)

    def forward(self, x):
        return self.fc(self.features(x).flatten(1))


model = SoundNet()

# %% only the last layer is trained
if FIXED:
    model.requires_grad_(False)
model.fc = nn.Linear(96, 9)
optimizer = torch.optim.Adam(model.fc.parameters(), lr=3e-3)

# %%
history = []
for epoch in range(9):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        history.append(loss.detach())
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum() for x, y in test_loader) / len(test_set)
    print(f"epoch {epoch}: loss {torch.stack(history[-50:]).mean():.3f}, {right:.2%} right")
