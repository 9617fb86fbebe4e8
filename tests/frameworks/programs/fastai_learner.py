"""fastai: a Learner with its callbacks."""

from __future__ import annotations

from typing import Any

from tests.frameworks.programs import BATCH, data, model
from tests.frameworks.reference import REST, Reference


def train(reference: Reference, with_callback: bool) -> None:
    from fastai.basics import Callback, CrossEntropyLossFlat, DataLoaders, Learner
    from fastai.data.load import DataLoader

    class Stamps(Callback):  # type: ignore[misc]
        def before_batch(self) -> None:
            if self.training:
                reference.mark("forward")

        def before_backward(self) -> None:
            reference.mark("backward")

        def before_step(self) -> None:
            reference.mark("optimizer")
            reference.updates += 1

        def after_step(self) -> None:
            reference.mark(REST)

        def before_validate(self) -> None:
            reference.mark("validate")

        def after_validate(self) -> None:
            reference.mark(REST)

    class Timed(DataLoader):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return reference.batches(super().__iter__())

    loaders: Any = DataLoaders(
        Timed(data(), bs=BATCH, num_workers=0), DataLoader(data(20), bs=BATCH, num_workers=0)
    )
    learner = Learner(loaders, model(), loss_func=CrossEntropyLossFlat(), cbs=[Stamps()])
    learner.logger = lambda _: None
    learner.fit(2, lr=1e-3)
