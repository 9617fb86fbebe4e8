"""Spectra in Lightning: the loader has no workers."""

from tests.frameworks.torchvision_operators import declare

declare()

import sys

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Spectra(Dataset):
    def __init__(self, count):
        self.waves = np.random.default_rng(0).normal(size=(count, 2048)).astype("float32")

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, index):
        wave = self.waves[index] + np.random.normal(scale=0.1, size=2048)
        frames = np.lib.stride_tricks.sliding_window_view(wave, 256)[::32]
        power = np.abs(np.fft.rfft(frames * np.hanning(256), axis=1))
        return torch.from_numpy(np.log1p(power).astype("float32")).reshape(-1)[:4096], index % 6


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(4096, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 6)
        )

    def training_step(self, batch, index):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


def main():
    workers = 1 if "--fixed" in sys.argv else 0
    loader = DataLoader(
        Spectra(5000), batch_size=50, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    trainer = L.Trainer(
        max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Classifier(), loader)


if __name__ == "__main__":
    main()
