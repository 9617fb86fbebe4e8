"""Hugging Face: ``Trainer(…, callbacks=[GpumonCallback()])``.

The Trainer tells where a step and its optimizer step begin and end, and what it will do before the next step:
log, evaluate, save. The backward pass is seen by a hook on `torch.autograd.backward`, waits at the loader
itself.
"""

from __future__ import annotations

import importlib
from typing import Any

from ..auto.patch import replace
from ..core.phases import BACKWARD, BETWEEN, CHECKPOINT, FORWARD, LOG, OPTIMIZER, OTHER, VALIDATE
from ..loop.monitor import TrainingMonitor
from ._base import FrameworkLoop

_BETWEEN_STEPS = (("should_log", LOG), ("should_evaluate", VALIDATE), ("should_save", CHECKPOINT))
"""What the Trainer does after a step or an epoch, in this order, if its control says so."""


def _base() -> type:
    try:
        found: type = importlib.import_module("transformers").TrainerCallback
    except ImportError:
        return object
    return found


class GpumonCallback(_base()):  # type: ignore[misc]
    """Records a Trainer's run and closes with a report. `monitor` is the TrainingMonitor behind it."""

    def __init__(self, name: str | None = None, **options: Any) -> None:
        self._loop = FrameworkLoop(name, "hf", "transformers", options)
        self._done: set[int] = set()
        """What has been done since the last step."""

    @property
    def monitor(self) -> TrainingMonitor:
        return self._loop.monitor

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._loop.begin(FORWARD, BACKWARD, OPTIMIZER, VALIDATE, CHECKPOINT, LOG)
        self._loop.watch_loader(more.get("train_dataloader"), getattr(args, "device", None))
        size = getattr(args, "train_batch_size", None)
        if size and self.monitor.batch_size is None:
            self.monitor.session.set_batch_size(size * getattr(args, "gradient_accumulation_steps", 1))
        self._hook_backward()

    def _hook_backward(self) -> None:
        autograd = importlib.import_module("torch.autograd")
        recorder = self._loop.recorder

        def make(original: Any) -> Any:
            def backward(*args: Any, **kwargs: Any) -> Any:
                recorder.mark(BACKWARD)
                try:
                    return original(*args, **kwargs)
                finally:
                    recorder.mark(OTHER)

            return backward

        self.monitor.session.when_stopped(replace(autograd, "backward", make))

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._loop.recorder.epoch()
        self._loop.wait()

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._loop.batch_is_here(FORWARD)

    def on_substep_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._loop.micro_batch()
        self._loop.recorder.mark(FORWARD)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._loop.recorder.mark(OPTIMIZER)

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._loop.recorder.mark(OTHER)

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._loop.micro_batch()
        self._loop.step(samples=self.monitor.batch_size)
        self._done = set()
        self._go_on(control)

    def _go_on(self, control: Any) -> None:
        """Mark what the Trainer does next; if nothing, it requests the next batch."""
        for wanted, phase in _BETWEEN_STEPS:
            if getattr(control, wanted, False) and phase not in self._done:
                self._loop.recorder.mark(phase)
                return
        self._loop.recorder.mark(BETWEEN)
        self._loop.wait()

    def _is_done(self, phase: int, control: Any) -> None:
        self._done.add(phase)
        self._go_on(control)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        if isinstance(logs, dict):
            numbers = {key: value for key, value in logs.items() if isinstance(value, (int, float))}
            self.monitor.scalars({f"hf/{key}": value for key, value in numbers.items()})
        if self._loop.recorder.current != VALIDATE:  # an evaluation also logs its results before it ends
            self._is_done(LOG, control)

    def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._is_done(VALIDATE, control)

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._is_done(CHECKPOINT, control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._loop.no_batch()
        self._done = set()
        self._go_on(control)

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._loop.no_batch()
        self._loop.end(report=getattr(state, "is_world_process_zero", True))
