"""Hugging Face: ``Trainer(…, callbacks=[GpumonCallback()])``.

The Trainer tells where a step begins and ends, before its optimizer step and after; waiting for data is
what lies between two steps. Backward is seen by a hook on `torch.autograd.backward`.
"""

from __future__ import annotations

import importlib
from typing import Any

from ..hooks import replace
from ..monitor import TrainingMonitor
from ..phases import BACKWARD, CHECKPOINT, FORWARD, LOG, OPTIMIZER, OTHER, VALIDATE
from ..recorder import Recorder


def _base() -> type:
    try:
        found: type = importlib.import_module("transformers").TrainerCallback
    except ImportError:
        return object
    return found


class GpumonCallback(_base()):  # type: ignore[misc]
    """Records a Trainer's run. `monitor` is the TrainingMonitor behind it."""

    def __init__(self, name: str | None = None, **options: Any) -> None:
        self.monitor = TrainingMonitor(name, way="hf", **options)
        self._recorder: Recorder = self.monitor.recorder
        self._asked = False
        self._between = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self.monitor.start_monitoring()
        self._recorder = self.monitor.recorder
        self.monitor.claim()
        for phase in (FORWARD, BACKWARD, OPTIMIZER, VALIDATE, CHECKPOINT, LOG):
            self._recorder.totals.use(phase)
        if more.get("train_dataloader") is not None:
            self.monitor.loaders.loader = more["train_dataloader"]
        size = getattr(args, "train_batch_size", None)
        if size and self.monitor.batch_size is None:
            self.monitor.set_batch_size(size * getattr(args, "gradient_accumulation_steps", 1))
        self._hook_backward()

    def _hook_backward(self) -> None:
        autograd = importlib.import_module("torch.autograd")
        recorder = self._recorder

        def make(original: Any) -> Any:
            def backward(*args: Any, **kwargs: Any) -> Any:
                recorder.mark(BACKWARD)
                try:
                    return original(*args, **kwargs)
                finally:
                    recorder.mark(OTHER)

            return backward

        self.monitor.when_stopped(replace(autograd, "backward", make))

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._recorder.epoch()
        self._asked = self._recorder.waiting()

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._recorder.arrived_at(FORWARD, self._asked)
        self._asked = False

    def on_substep_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._recorder.mark(FORWARD)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._recorder.mark(OPTIMIZER)

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._recorder.mark(OTHER)

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self.monitor.step(samples=self.monitor.batch_size)
        if getattr(control, "should_log", False) or getattr(control, "should_evaluate", False):
            self._recorder.mark(VALIDATE if getattr(control, "should_evaluate", False) else LOG)
        elif getattr(control, "should_save", False):
            self._recorder.mark(CHECKPOINT)
        else:
            self._asked = self._recorder.waiting()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        if isinstance(logs, dict):
            numbers = {key: value for key, value in logs.items() if isinstance(value, (int, float))}
            self.monitor.scalars({f"hf/{key}": value for key, value in numbers.items()})
        self._after(control, "should_evaluate", VALIDATE)

    def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._after(control, "should_save", CHECKPOINT)

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._asked = self._asked or self._recorder.waiting()

    def _after(self, control: Any, coming: str, phase: int) -> None:
        """What the Trainer does next between two steps; nothing more: it waits for the next batch."""
        if getattr(control, coming, False):
            self._recorder.mark(phase)
        elif not self._asked:
            self._asked = self._recorder.waiting()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._recorder.exhausted(self._asked)
        self._asked = False

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self.monitor.stop_monitoring()
