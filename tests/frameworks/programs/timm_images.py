"""timm: a model, an optimizer and an EMA of it, in a loop of one's own."""

from __future__ import annotations

from tests.frameworks.programs import CLASSES
from tests.frameworks.reference import REST, Reference


def train(reference: Reference, with_callback: bool) -> None:
    import timm
    import torch
    from timm.loss import LabelSmoothingCrossEntropy
    from timm.optim import create_optimizer_v2
    from timm.utils import ModelEmaV2
    from torch.utils.data import DataLoader, TensorDataset

    network = timm.create_model("resnet18", num_classes=CLASSES)
    average = ModelEmaV2(network)
    optimizer = create_optimizer_v2(network, opt="adamw", lr=1e-3)
    criterion = LabelSmoothingCrossEntropy()
    images = TensorDataset(torch.randn(160, 3, 32, 32), torch.randint(0, CLASSES, (160,)))
    reference.during(type(optimizer), "step", "optimizer", then=REST)
    for _ in range(2):
        network.train()
        for x, y in reference.batches(DataLoader(images, batch_size=8)):
            optimizer.zero_grad()
            reference.mark("forward")
            loss = criterion(network(x), y)
            reference.mark("backward")
            loss.backward()
            reference.mark(REST)
            optimizer.step()
            average.update(network)
        network.eval()
        reference.mark("validate")
        with torch.no_grad():
            for x, _ in DataLoader(images, batch_size=16):
                network(x)
        reference.mark(REST)
