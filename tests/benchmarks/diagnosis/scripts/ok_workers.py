"""Pictures made by a worker while the model computes."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Patches(Dataset):
    def __init__(self):
        self.pictures = np.random.default_rng(0).integers(0, 255, (1600, 3, 40, 40), dtype=np.uint8)

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        top, left = np.random.randint(0, 8, 2)
        patch = self.pictures[index, :, top : top + 32, left : left + 32]
        return torch.from_numpy(patch.astype(np.float32) / 255), index % 10


def main():
    loader = DataLoader(Patches(), batch_size=32, shuffle=True, num_workers=1, persistent_workers=True)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(4096, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(4):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
