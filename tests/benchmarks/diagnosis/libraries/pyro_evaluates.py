"""Pyro's variational autoencoder; the ELBO of all test images is computed every 10 steps."""

import sys

import pyro
import torch
from pyro import distributions
from pyro.infer import SVI, Trace_ELBO
from pyro.optim import Adam
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Decoder(nn.Module):
    def __init__(self, z_dim, hidden):
        super().__init__()
        self.fc1, self.fc21 = nn.Linear(z_dim, hidden), nn.Linear(hidden, 784)

    def forward(self, z):
        return torch.sigmoid(self.fc21(nn.functional.softplus(self.fc1(z))))


class Encoder(nn.Module):
    def __init__(self, z_dim, hidden):
        super().__init__()
        self.fc1, self.fc21, self.fc22 = (
            nn.Linear(784, hidden), nn.Linear(hidden, z_dim), nn.Linear(hidden, z_dim),
        )  # fmt: skip

    def forward(self, x):
        hidden = nn.functional.softplus(self.fc1(x))
        return self.fc21(hidden), torch.exp(self.fc22(hidden))


class VAE(nn.Module):
    def __init__(self, z_dim=50, hidden=400):
        super().__init__()
        self.encoder, self.decoder, self.z_dim = Encoder(z_dim, hidden), Decoder(z_dim, hidden), z_dim

    def model(self, x):
        pyro.module("decoder", self.decoder)
        with pyro.plate("data", x.shape[0]):
            loc, scale = x.new_zeros(x.shape[0], self.z_dim), x.new_ones(x.shape[0], self.z_dim)
            z = pyro.sample("latent", distributions.Normal(loc, scale).to_event(1))
            image = self.decoder(z)
            pyro.sample("obs", distributions.Bernoulli(image, validate_args=False).to_event(1), obs=x)

    def guide(self, x):
        pyro.module("encoder", self.encoder)
        with pyro.plate("data", x.shape[0]):
            pyro.sample("latent", distributions.Normal(*self.encoder(x)).to_event(1))


pyro.set_rng_seed(0)
train = DataLoader(TensorDataset(torch.rand(12800, 784)), batch_size=128, shuffle=True)
test = DataLoader(TensorDataset(torch.rand(1280, 784)), batch_size=128)
vae = VAE()
svi = SVI(vae.model, vae.guide, Adam({"lr": 1e-3}), loss=Trace_ELBO())
every = 100 if "--fixed" in sys.argv else 10
steps = 0
for _ in range(8):
    for (x,) in train:
        loss = svi.step(x)
        steps += 1
        if steps % every == 0:
            held = sum(svi.evaluate_loss(images) for (images,) in test)
print(steps, loss, held)
