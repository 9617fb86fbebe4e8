"""Energy use of buildings with Lightning, default loader settings."""

import argparse
import logging
import tempfile
import time

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

logging.getLogger("lightning").setLevel(logging.ERROR)


class Buildings(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        time.sleep(0.0024)
        g = torch.Generator().manual_seed(i)
        x = torch.randn(28, generator=g)
        return x, x[:4].sum()


class Energy(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(28, 112), nn.SiLU(), nn.Linear(112, 112), nn.SiLU(), nn.Linear(112, 1)
        )

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x).squeeze(1), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--fixed", action="store_true")
    fixed = ap.parse_args().fixed
    L.seed_everything(3, verbose=False)
    loader = DataLoader(
        Buildings(10 * 220), batch_size=10, num_workers=3 if fixed else 0, persistent_workers=fixed
    )
    with tempfile.TemporaryDirectory() as folder:
        trainer = L.Trainer(
            max_epochs=1,
            accelerator="gpu",
            devices=1,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=folder,
            precision="bf16-mixed",
        )
        trainer.fit(Energy(), loader)
        print(trainer.callback_metrics)
