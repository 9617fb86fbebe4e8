"""Knobs of torch's own switches: precision, the choice of kernels, anomaly mode."""

from __future__ import annotations

from ..auto.patch import replace
from .knob import ROUNDING, Flip, Knob, Outcome, Place, Switch, no_accelerator, switched_on


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

    def apply(self, place: Place, value: bool, outcome: Outcome) -> Flip | None:
        return switched_on(self.live(place, value, outcome))

    def live(self, place: Place, value: bool, outcome: Outcome) -> Flip | None:
        if no_accelerator(place, outcome):
            return None
        places = place.torch.backends.cuda.matmul, place.torch.backends.cudnn
        before = tuple(one.allow_tf32 for one in places)
        if before == (value, value):
            outcome.already(f"it is {value}")
            return None
        outcome.applied(f"{before[0]} → {value}")

        def flip(on: bool) -> None:
            for one, was in zip(places, before, strict=True):
                one.allow_tf32 = value if on else was

        return flip


class CudnnBenchmark(Switch):
    name = "cudnn.benchmark"
    written = "torch.backends.cudnn.benchmark = {flag}"
    effect = ROUNDING

    def apply(self, place: Place, value: bool, outcome: Outcome) -> Flip | None:
        return switched_on(self.live(place, value, outcome))

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

    def apply(self, place: Place, value: bool, outcome: Outcome) -> Flip | None:
        return switched_on(self.live(place, value, outcome))

    def live(self, place: Place, value: bool, outcome: Outcome) -> Flip:
        """Whatever switches it on, once and for all or around each step, asks this one function of torch."""
        torch, is_on = place.torch, False
        change = torch.set_anomaly_enabled
        asked: tuple[bool, bool] = (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())

        def ask(mode: bool, check_nan: bool = True) -> None:
            nonlocal asked
            asked = mode, check_nan
            if mode:
                outcome.applied("anomaly mode is switched off")
            change(mode and not is_on, check_nan)

        def flip(on: bool) -> None:
            nonlocal is_on
            is_on = on
            change(asked[0] and not on, asked[1])

        if asked[0]:
            outcome.applied("anomaly mode is switched off")
        replace(torch, "set_anomaly_enabled", lambda original: ask)
        return flip
