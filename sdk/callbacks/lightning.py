"""Lightning: ``Trainer(callbacks=[GpumonCallback()])``.

Lightning owns the loop, so its hooks tell where a step's parts begin: forward (the training step), backward,
optimizer, and what lies between. Waits for a batch are seen at the loader itself.
"""

from __future__ import annotations

import importlib
from typing import Any

from ..core.phases import BACKWARD, BETWEEN, CHECKPOINT, FORWARD, OPTIMIZER, OTHER, VALIDATE
from ..loop.monitor import TrainingMonitor
from ._base import FrameworkLoop


def _base() -> type:
    """Lightning's Callback, under either of its two names; else a plain class with the same hooks."""
    for name in ("lightning.pytorch", "pytorch_lightning"):
        try:
            found: type = importlib.import_module(name).Callback
        except ImportError:
            continue
        return found
    return object


class GpumonCallback(_base()):  # type: ignore[misc]
    """Records a Lightning fit and closes with a report. `monitor` is the TrainingMonitor behind it."""

    def __init__(self, name: str | None = None, **options: Any) -> None:
        super().__init__()
        self._loop = FrameworkLoop(name, "lightning", "lightning", options)
        self._updated = False

    @property
    def monitor(self) -> TrainingMonitor:
        return self._loop.monitor

    def on_fit_start(self, trainer: Any, module: Any) -> None:
        self._loop.begin(FORWARD, BACKWARD, OPTIMIZER, BETWEEN, VALIDATE, CHECKPOINT)

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        strategy = getattr(trainer, "strategy", None)
        self._loop.watch_loader(
            getattr(trainer, "train_dataloader", None), getattr(strategy, "root_device", None)
        )
        self._loop.recorder.epoch()
        self._loop.wait()

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
        self._loop.batch_is_here(FORWARD)
        self.monitor.session.count_batch(batch)

    def on_before_backward(self, trainer: Any, module: Any, loss: Any) -> None:
        self._loop.recorder.mark(BACKWARD)

    def on_after_backward(self, trainer: Any, module: Any) -> None:
        self._loop.recorder.mark(OTHER)

    def on_before_optimizer_step(self, trainer: Any, module: Any, optimizer: Any) -> None:
        self._updated = True
        self._loop.recorder.mark(OPTIMIZER)

    def on_before_zero_grad(self, trainer: Any, module: Any, optimizer: Any) -> None:
        """Lightning clears gradients after the training step, before the backward pass."""
        self._loop.recorder.mark(FORWARD)

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """A step ends, or one of the micro-batches over which gradients are accumulated."""
        self._loop.micro_batch()
        if self._updated or getattr(trainer, "accumulate_grad_batches", 1) <= 1:
            loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
            self._loop.step(loss)
        else:
            self._loop.recorder.mark(OTHER)
        self._updated = False
        self._loop.wait()

    def on_validation_start(self, trainer: Any, module: Any) -> None:
        if getattr(trainer, "sanity_checking", False):
            return
        self._loop.no_batch()
        self._loop.recorder.push(VALIDATE)

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        if getattr(trainer, "sanity_checking", False):
            return
        self._loop.recorder.pop()
        self._loop.wait()

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        self._loop.no_batch()

    def on_fit_end(self, trainer: Any, module: Any) -> None:
        self._loop.end(report=getattr(trainer, "is_global_zero", True))

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        self._loop.end(failed=True, report=False)
