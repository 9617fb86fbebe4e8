"""A recurrent regressor in Lightning, with the Trainer's anomaly detection left on."""

from tests.frameworks.torchvision_operators import declare

declare()

import sys

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Forecaster(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(24, 96)
        self.head = nn.Sequential(nn.Linear(96, 96), nn.Tanh(), nn.Linear(96, 1))

    def training_step(self, batch, index):
        series, target = batch
        state = torch.zeros(len(series), 96)
        for moment in series.unbind(1):
            state = self.cell(moment, state)
        return nn.functional.mse_loss(self.head(state).squeeze(1), target)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3, fused=True)


def main():
    data = TensorDataset(torch.randn(6400, 12, 24), torch.randn(6400))
    trainer = L.Trainer(
        max_epochs=2,
        accelerator="cpu",
        detect_anomaly="--fixed" not in sys.argv,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Forecaster(), DataLoader(data, batch_size=64, shuffle=True))


if __name__ == "__main__":
    main()
