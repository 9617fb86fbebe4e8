"""skorch around a network of many small parts, its optimizer as it comes."""

from tests.frameworks.torchvision_operators import declare

declare()

import sys

import numpy
import torch
from skorch import NeuralNetClassifier
from torch import nn


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(160, 160), nn.LayerNorm(160), nn.ReLU()) for _ in range(24)
        )
        self.head = nn.Linear(160, 3)

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


rows = numpy.random.default_rng(0).normal(size=(3200, 160)).astype("float32")
options = {"optimizer__fused": True} if "--fixed" in sys.argv else {"optimizer__foreach": False}
net = NeuralNetClassifier(
    Tower, criterion=nn.CrossEntropyLoss, optimizer=torch.optim.AdamW, lr=1e-3, max_epochs=24, batch_size=128,
    verbose=0, train_split=None, iterator_train__shuffle=True, **options,
)  # fmt: skip
net.fit(rows, numpy.arange(3200) % 3)
