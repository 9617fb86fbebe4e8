"""Digits with PyTorch-Ignite; its Checkpoint handler saves every other iteration."""

import sys
import tempfile

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import Checkpoint, DiskSaver
from ignite.metrics import Accuracy, Loss
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(32 * 49, 512), nn.ReLU(), nn.Linear(512, 10))

    def forward(self, x):
        return self.head(self.features(x))


torch.manual_seed(0)
train = TensorDataset(torch.randn(6400, 1, 28, 28), torch.randint(0, 10, (6400,)))
valid = TensorDataset(torch.randn(1024, 1, 28, 28), torch.randint(0, 10, (1024,)))
model, criterion = Network(), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
trainer = create_supervised_trainer(model, optimizer, criterion)
evaluator = create_supervised_evaluator(model, metrics={"accuracy": Accuracy(), "nll": Loss(criterion)})
valid_loader = DataLoader(valid, batch_size=256)


@trainer.on(Events.EPOCH_COMPLETED)
def report(engine):
    evaluator.run(valid_loader)
    print(engine.state.epoch, evaluator.state.metrics)


often = Events.EPOCH_COMPLETED if "--fixed" in sys.argv else Events.ITERATION_COMPLETED(every=2)
saved = {"model": model, "optimizer": optimizer, "trainer": trainer}
folder = DiskSaver(tempfile.mkdtemp(), require_empty=False)
trainer.add_event_handler(often, Checkpoint(saved, folder, n_saved=2))
trainer.run(DataLoader(train, batch_size=64, shuffle=True), max_epochs=6)
