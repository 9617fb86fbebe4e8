"""A small GAN: two networks, two optimizers, one loader."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


def main(epochs=4):
    real = torch.randn(6144, 64) @ torch.randn(64, 256)
    loader = DataLoader(TensorDataset(real), batch_size=128, shuffle=True, drop_last=True)
    generator, critic = mlp(32, 256, 512, 256), mlp(256, 512, 256, 1)
    g_opt = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    d_opt = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    bce = nn.functional.binary_cross_entropy_with_logits
    for epoch in range(epochs):
        for (batch,) in loader:
            noise = torch.randn(len(batch), 32)
            fake = generator(noise)
            d_loss = bce(critic(batch), torch.ones(len(batch), 1)) + bce(
                critic(fake.detach()), torch.zeros(len(batch), 1)
            )
            d_opt.zero_grad()
            d_loss.backward()
            d_opt.step()
            g_loss = bce(critic(fake), torch.ones(len(batch), 1))
            g_opt.zero_grad()
            g_loss.backward()
            g_opt.step()
        print(f"epoch {epoch}: d {d_loss.item():.3f} g {g_loss.item():.3f}")


if __name__ == "__main__":
    main()
