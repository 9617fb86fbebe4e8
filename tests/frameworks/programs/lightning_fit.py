"""Lightning: the whole step runs in a closure of `optimizer.step`."""

from __future__ import annotations

from typing import Any

from tests.frameworks.programs import BATCH, data, model
from tests.frameworks.reference import REST, Reference


def train(reference: Reference, with_callback: bool) -> None:
    import lightning as L
    import torch
    from torch.nn import functional
    from torch.utils.data import DataLoader

    class Task(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = model()

        def training_step(self, batch: Any, index: int) -> Any:
            reference.mark("forward")
            return functional.cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch: Any, index: int) -> Any:
            return functional.cross_entropy(self.net(batch[0]), batch[1])

        def on_validation_start(self) -> None:
            reference.mark("validate")

        def on_validation_end(self) -> None:
            reference.mark(REST)

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3)
            reference.during(optimizer, "step", "optimizer", then=REST)
            return optimizer

    reference.during(torch.Tensor, "backward", "backward", then="optimizer")

    class Timed(DataLoader[Any]):
        def __iter__(self) -> Any:
            return reference.batches(super().__iter__())

    callbacks: list[Any] = []
    if with_callback:
        from sdk.callbacks.lightning import GpumonCallback

        callbacks = [GpumonCallback("lightning")]
    trainer = L.Trainer(
        max_epochs=2, accelerator="cpu", callbacks=callbacks, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
    )  # fmt: skip
    trainer.fit(Task(), Timed(data(), batch_size=BATCH), DataLoader(data(20), batch_size=BATCH))
