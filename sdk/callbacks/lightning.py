"""Lightning: ``Trainer(callbacks=[GpumonCallback()])``.

Lightning owns the loop, so its hooks say where a step's parts begin: waiting for a batch, forward
(the training step), backward, optimizer, and what lies between.
"""

from __future__ import annotations

import importlib
from typing import Any

from ..monitor import TrainingMonitor
from ..phases import BACKWARD, BETWEEN, FORWARD, OPTIMIZER, OTHER, VALIDATE
from ..recorder import Recorder


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
    """Records a Lightning fit. `monitor` is the TrainingMonitor behind it."""

    def __init__(self, name: str | None = None, **options: Any) -> None:
        super().__init__()
        self.monitor = TrainingMonitor(name, way="lightning", **options)
        self._recorder: Recorder = self.monitor.recorder
        self._asked = False

    def on_fit_start(self, trainer: Any, module: Any) -> None:
        self.monitor.start_monitoring()
        self._recorder = self.monitor.recorder
        self.monitor.claim()
        for phase in (FORWARD, BACKWARD, OPTIMIZER, BETWEEN, VALIDATE):
            self._recorder.totals.use(phase)

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        loader = getattr(trainer, "train_dataloader", None)
        if loader is not None:
            self.monitor.loaders.loader = loader
        self._recorder.epoch()
        self._asked = self._recorder.waiting()

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
        self._recorder.arrived_at(FORWARD, self._asked)
        self._asked = False
        self._recorder.count(*self.monitor.size.of(batch))

    def on_before_backward(self, trainer: Any, module: Any, loss: Any) -> None:
        self._recorder.mark(BACKWARD)

    def on_after_backward(self, trainer: Any, module: Any) -> None:
        self._recorder.mark(OTHER)

    def on_before_optimizer_step(self, trainer: Any, module: Any, optimizer: Any) -> None:
        self._recorder.mark(OPTIMIZER)

    def on_before_zero_grad(self, trainer: Any, module: Any, optimizer: Any) -> None:
        """Lightning clears gradients before it computes new ones: from here it is the forward pass."""
        self._recorder.mark(FORWARD)

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        self.monitor.step(loss)
        self._asked = self._recorder.waiting()

    def on_validation_start(self, trainer: Any, module: Any) -> None:
        if getattr(trainer, "sanity_checking", False):
            return
        self._settle()
        self._recorder.push(VALIDATE)

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        if getattr(trainer, "sanity_checking", False):
            return
        self._recorder.pop()
        self._asked = self._recorder.waiting()

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        self._settle()

    def _settle(self) -> None:
        """No batch is being waited for after all."""
        self._recorder.exhausted(self._asked)
        self._asked = False

    def on_fit_end(self, trainer: Any, module: Any) -> None:
        self.monitor.stop_monitoring()

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        self.monitor.stop_monitoring(failed=True)
