"""Small CNN on generated photos with random augmentation written in NumPy."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

FIXED = "--fixed" in sys.argv


class Photos(Dataset):
    def __init__(self, count=3000):
        rng = np.random.default_rng(1)
        self.images = rng.integers(0, 255, size=(count, 3, 32, 32), dtype=np.uint8)
        self.labels = rng.integers(0, 10, size=count)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index].astype(np.float32) / 255
        if np.random.rand() < 0.5:
            image = image[:, :, ::-1]
        top, left = np.random.randint(0, 8, size=2)
        image = np.pad(image, ((0, 0), (4, 4), (4, 4)))[:, top : top + 32, left : left + 32]
        noise = np.random.normal(0, 0.05, size=image.shape).astype(np.float32)
        angle = np.random.uniform(-0.2, 0.2)
        rows, columns = np.meshgrid(np.arange(32) - 16, np.arange(32) - 16, indexing="ij")
        turned_rows = np.clip(rows * np.cos(angle) - columns * np.sin(angle) + 16, 0, 31).astype(int)
        turned_columns = np.clip(rows * np.sin(angle) + columns * np.cos(angle) + 16, 0, 31).astype(int)
        image = image[:, turned_rows, turned_columns] * np.random.uniform(0.8, 1.2) + noise
        return torch.from_numpy(np.ascontiguousarray(image)), int(self.labels[index])


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 16, 3, stride=2)
        self.conv2 = torch.nn.Conv2d(16, 32, 3, stride=2)
        self.fc = torch.nn.Linear(32 * 49, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        return self.fc(x.flatten(1))


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
workers = 2 if FIXED else 0
if __name__ == "__main__":
    loader = DataLoader(
        Photos(), batch_size=32, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    for epoch in range(5):
        for images, labels in loader:
            opt.zero_grad()
            loss = F.cross_entropy(net(images), labels)
            loss.backward()
            opt.step()
        print("epoch", epoch, "loss", round(loss.item(), 3))
