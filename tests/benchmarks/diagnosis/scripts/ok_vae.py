"""A convolutional variational autoencoder with an annealed KL term and callbacks; saved once, at the end."""

import os
import tempfile
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(kw_only=True)
class Config:
    latent: int = 16
    width: int = 16
    batch_size: int = 64
    max_steps: int = 480
    lr: float = 1e-3
    kl_warmup: int = 100
    refresh_rate: int = 50
    seed: int = 29


class VAE(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        w = cfg.width
        self.encoder = nn.Sequential(
            nn.Conv2d(1, w, 4, 2, 1), nn.ReLU(), nn.Conv2d(w, 2 * w, 4, 2, 1), nn.ReLU(), nn.Flatten()
        )
        self.to_stats = nn.Linear(2 * w * 64, 2 * cfg.latent)
        self.from_latent = nn.Linear(cfg.latent, 2 * w * 64)
        self.decoder = nn.Sequential(
            nn.Unflatten(1, (2 * w, 8, 8)),
            nn.ConvTranspose2d(2 * w, w, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(w, 1, 4, 2, 1),
        )

    def forward(self, x):
        mean, log_var = self.to_stats(self.encoder(x)).chunk(2, dim=1)
        z = mean + torch.randn_like(mean) * (0.5 * log_var).exp()
        return self.decoder(self.from_latent(z)), mean, log_var


class ProgressBar:
    def __init__(self, refresh_rate):
        self.refresh_rate = refresh_rate

    def on_train_batch_end(self, runner, outputs):
        if runner.global_step % self.refresh_rate == 0:
            shown = " ".join(f"{name}={value.item():.3f}" for name, value in outputs.items())
            print(f"{runner.global_step}/{runner.cfg.max_steps} {shown}")

    def on_train_end(self, runner):
        print("done")


class KLAnnealing:
    def on_train_batch_end(self, runner, outputs):
        runner.beta = min(1.0, runner.global_step / runner.cfg.kl_warmup)

    def on_train_end(self, runner): ...


class LastCheckpoint:
    def __init__(self, folder):
        self.path = os.path.join(folder, "last.ckpt")

    def on_train_batch_end(self, runner, outputs): ...

    def on_train_end(self, runner):
        torch.save({"model": runner.model.state_dict(), "step": runner.global_step}, self.path)


class Runner:
    def __init__(self, cfg, callbacks):
        self.cfg, self.callbacks = cfg, callbacks
        self.model = VAE(cfg)
        self.optimizer = torch.optim.Adamax(self.model.parameters(), lr=cfg.lr, foreach=True)
        self.beta, self.global_step = 0.0, 0

    def training_step(self, x):
        logits, mean, log_var = self.model(x)
        reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / len(x)
        kl = -0.5 * (1 + log_var - mean.pow(2) - log_var.exp()).sum(1).mean()
        return {"loss": reconstruction + self.beta * kl, "kl": kl.detach()}

    def fit(self, images):
        while self.global_step < self.cfg.max_steps:
            outputs = self.training_step(images[torch.randint(len(images), (self.cfg.batch_size,))])
            self.optimizer.zero_grad(set_to_none=True)
            outputs["loss"].backward()
            self.optimizer.step()
            self.global_step += 1
            for callback in self.callbacks:
                callback.on_train_batch_end(self, outputs)
        for callback in self.callbacks:
            callback.on_train_end(self)


if __name__ == "__main__":
    cfg = Config()
    torch.manual_seed(cfg.seed)
    discs = F.interpolate(torch.rand(1500, 1, 8, 8), size=(32, 32), mode="bilinear").gt(0.5).float()
    with tempfile.TemporaryDirectory() as folder:
        Runner(cfg, [ProgressBar(cfg.refresh_rate), KLAnnealing(), LastCheckpoint(folder)]).fit(discs)
