"""A fastai Learner with short epochs that saves the model after each."""

from tests.frameworks.torchvision_operators import declare

declare()

import sys
import tempfile

import torch
from fastai.basics import CrossEntropyLossFlat, DataLoaders, Learner
from fastai.callback.tracker import SaveModelCallback
from fastai.data.load import DataLoader
from torch import nn


class Rows:
    def __init__(self, count):
        self.x, self.y = torch.randn(count, 256), torch.randint(0, 4, (count,))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


network = nn.Sequential(
    nn.Linear(256, 768),
    nn.ReLU(),
    nn.Linear(768, 768),
    nn.ReLU(),
    nn.Linear(768, 768),
    nn.ReLU(),
    nn.Linear(768, 4),
)
loaders = DataLoaders(DataLoader(Rows(384), bs=64, num_workers=0), DataLoader(Rows(64), bs=64, num_workers=0))
saves = [] if "--fixed" in sys.argv else [SaveModelCallback(every_epoch=1, with_opt=True)]
learner = Learner(
    loaders, network, loss_func=CrossEntropyLossFlat(), cbs=saves, path=tempfile.mkdtemp(), model_dir="."
)
learner.logger = lambda _: None
with learner.no_bar():
    learner.fit(30, lr=1e-3)
