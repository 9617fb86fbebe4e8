"""Knobs of what a loop does beside training."""

from __future__ import annotations

import functools
from typing import Any

from ..auto.import_hook import when_imported
from ..auto.patch import replace
from .knob import Number, Outcome, Place

_WRITERS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "torch.utils.tensorboard.writer",
        "SummaryWriter",
        ("add_scalar", "add_scalars", "add_histogram", "add_image", "add_images", "add_figure", "flush"),
    ),
    (
        "tensorboardX.writer",
        "SummaryWriter",
        ("add_scalar", "add_scalars", "add_histogram", "add_image", "add_images", "add_figure", "flush"),
    ),
    ("wandb.sdk.wandb_run", "Run", ("log",)),
    ("mlflow.tracking.client", "MlflowClient", ("log_metric", "log_batch")),
)
"""Module, class, methods that record something and give nothing back."""


class LogEvery(Number):
    """TensorBoard, W&B and MLflow are told of one step in so many."""

    name = "log.every"
    written = "log every {value} steps"
    takes = "steps, as 50"
    least = 1
    needs = "nothing was logged to TensorBoard, W&B or MLflow"

    def apply(self, place: Place, value: int, outcome: Outcome) -> None:
        for module, owner, names in _WRITERS:
            when_imported(module, functools.partial(self._throttle, place, value, outcome, owner, names))

    def _throttle(
        self, place: Place, value: int, outcome: Outcome, owner: str, names: tuple[str, ...], module: Any
    ) -> None:
        def make(original: Any) -> Any:
            def log(*args: Any, **kwargs: Any) -> Any:
                if place.steps() % value == 0:
                    return original(*args, **kwargs)
                return outcome.applied(f"one step in {value} is logged")

            return log

        for name in names:
            if hasattr(getattr(module, owner, None), name):
                replace(getattr(module, owner), name, make)
