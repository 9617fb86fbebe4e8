"""Knobs of torch's own switches: precision, the choice of kernels, anomaly mode."""

from __future__ import annotations

import contextlib
from typing import Any

from ..auto.patch import replace
from .knob import ROUNDING, Flip, Knob, Outcome, Place, Switch, no_accelerator


class MatmulPrecision(Knob):
    name = "precision.matmul_precision"
    written = 'torch.set_float32_matmul_precision("{value}")'
    takes = "highest, high, medium"
    effect = ROUNDING

    def read(self, text: str) -> str:
        if text not in ("highest", "high", "medium"):
            raise ValueError(f"{self.name} is highest, high or medium, not {text}")
        return text

    def apply(self, place: Place, value: str, outcome: Outcome) -> None:
        before = place.torch.get_float32_matmul_precision()
        place.torch.set_float32_matmul_precision(value)
        (outcome.already if before == value else outcome.applied)(f"{before} → {value}")


class Tf32(Switch):
    name = "precision.matmul_tf32"
    written = "torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = {flag}"
    effect = ROUNDING

    def apply(self, place: Place, value: bool, outcome: Outcome) -> None:
        if no_accelerator(place, outcome):
            return
        place.torch.backends.cuda.matmul.allow_tf32 = value
        place.torch.backends.cudnn.allow_tf32 = value
        outcome.applied(f"TF32 {'on' if value else 'off'}")

    def live(self, place: Place, value: bool, outcome: Outcome) -> Flip | None:
        if no_accelerator(place, outcome):
            return None
        backends = place.torch.backends
        before = backends.cuda.matmul.allow_tf32
        if before == value:
            outcome.already(f"it is {value}")
            return None
        outcome.applied(f"{before} → {value}")
        return lambda on: setattr(backends.cuda.matmul, "allow_tf32", value if on else before)


class CudnnBenchmark(Switch):
    name = "cudnn.benchmark"
    written = "torch.backends.cudnn.benchmark = {flag}"
    effect = ROUNDING

    def apply(self, place: Place, value: bool, outcome: Outcome) -> None:
        if no_accelerator(place, outcome):
            return
        place.torch.backends.cudnn.benchmark = value
        outcome.applied(f"cudnn.benchmark is {value}")

    def live(self, place: Place, value: bool, outcome: Outcome) -> Flip | None:
        if no_accelerator(place, outcome):
            return None
        cudnn = place.torch.backends.cudnn
        before = cudnn.benchmark
        if before == value:
            outcome.already(f"it is {value}")
            return None
        outcome.applied(f"{before} → {value}")
        return lambda on: setattr(cudnn, "benchmark", value if on else before)


class Anomaly(Switch):
    """Anomaly mode: looks for values that are not numbers, and changes none."""

    name = "anomaly"
    written = "no torch.autograd.set_detect_anomaly(True)"
    takes = "off"
    only = False
    needs = "the script does not switch anomaly mode on"

    def apply(self, place: Place, value: bool, outcome: Outcome) -> None:
        self._replace(place, outcome, [True])

    def live(self, place: Place, value: bool, outcome: Outcome) -> Flip:
        """Switched on once and for all, or around each step."""
        torch, off = place.torch, [False]
        was_on, looks_for_nan = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
        self._replace(place, outcome, off)
        if was_on:
            outcome.applied("anomaly mode is switched off")

        def flip(on: bool) -> None:
            off[0] = on
            if was_on:
                torch.set_anomaly_enabled(not on, looks_for_nan)

        return flip

    def _replace(self, place: Place, outcome: Outcome, off: list[bool]) -> None:
        def make(original: Any) -> Any:
            def asked(*args: Any, **kwargs: Any) -> Any:
                instead = _Off(outcome, args)
                return instead if off[0] else original(*args, **kwargs)

            return asked

        for name in ("set_detect_anomaly", "detect_anomaly"):
            replace(place.torch.autograd, name, make)


class _Off(contextlib.AbstractContextManager[None]):
    """What the script gets instead: a context in which nothing is switched on."""

    def __init__(self, outcome: Outcome, asked: tuple[Any, ...]) -> None:
        if asked[:1] != (False,):
            outcome.applied("anomaly mode stays off")

    def __exit__(self, *_: Any) -> None:
        return None
