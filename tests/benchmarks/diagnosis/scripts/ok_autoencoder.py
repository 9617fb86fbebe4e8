"""A convolutional autoencoder in a small class of its own."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Squeeze(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 4, 2, 1), nn.ReLU())
        self.up = nn.Sequential(
            nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, 1, 4, 2, 1)
        )

    def forward(self, x):
        return self.up(self.down(x))


class Trainer:
    def __init__(self, model, loader, epochs):
        self.model, self.loader, self.epochs = model, loader, epochs
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def learn(self, x):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(x), x)
        loss.backward()
        self.optimizer.step()
        return loss

    def run(self):
        for epoch in range(self.epochs):
            for (x,) in self.loader:
                loss = self.learn(x)
            print(epoch, loss.item())


images = TensorDataset(torch.rand(3200, 1, 28, 28))
Trainer(Squeeze(), DataLoader(images, batch_size=32, shuffle=True), 2).run()
