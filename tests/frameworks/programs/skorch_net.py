"""skorch: a scikit-learn estimator around a module; its optimizer gets a closure."""

from __future__ import annotations

from typing import Any

from tests.frameworks.programs import BATCH, CLASSES, STEPS, WIDTH, model
from tests.frameworks.reference import REST, Reference


def train(reference: Reference, with_callback: bool) -> None:
    import numpy
    import torch
    from skorch import NeuralNetClassifier

    class Stamped:
        def __init__(self, loader: Any) -> None:
            self.loader = loader

        def __iter__(self) -> Any:
            return reference.batches(self.loader)

    class Timed(NeuralNetClassifier):  # type: ignore[misc]
        def get_iterator(self, dataset: Any, training: bool = False) -> Any:
            found = super().get_iterator(dataset, training=training)
            return Stamped(found) if training else found

        def train_step_single(self, *args: Any, **kwargs: Any) -> Any:
            reference.mark("forward")
            return super().train_step_single(*args, **kwargs)

    reference.during(torch.Tensor, "backward", "backward", then="optimizer")
    reference.during(torch.optim.AdamW, "step", "optimizer", then=REST)
    rows = numpy.random.default_rng(0).normal(size=(STEPS * BATCH, WIDTH)).astype("float32")
    labels = numpy.arange(len(rows)) % CLASSES
    net = Timed(
        model, criterion=torch.nn.CrossEntropyLoss, optimizer=torch.optim.AdamW, lr=1e-3, max_epochs=2,
        batch_size=BATCH, verbose=0, train_split=None,
    )  # fmt: skip
    net.fit(rows, labels)
