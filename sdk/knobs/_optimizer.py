"""Knobs of torch's own optimizers."""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import Any

from ..auto.patch import replace
from .knob import ROUNDING, Flip, Outcome, Place, Switch


class OptimizerArgument(Switch):
    """A keyword of torch's optimizers, given to each of them as it is made."""

    effect = ROUNDING
    argument = ""
    excludes = ""
    """The keyword that cannot be on at the same time."""

    @property
    def needs(self) -> str:  # type: ignore[override]
        return f"no optimizer of torch that takes `{self.argument}` was made"

    def apply(self, place: Place, value: bool, outcome: Outcome) -> None:
        for kind in vars(place.torch.optim).values():
            if isinstance(kind, type) and self._takes_it(kind):
                replace(kind, "__init__", functools.partial(self._given, value, outcome))

    def _takes_it(self, kind: type) -> bool:
        return "__init__" in vars(kind) and self.argument in inspect.signature(kind.__init__).parameters  # type: ignore[misc]

    def _given(self, value: bool, outcome: Outcome, original: Any) -> Any:
        def __init__(optimizer: Any, params: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get(self.argument) == value:
                outcome.already(f"`{self.argument}` is {value} in the script")
                return original(optimizer, params, *args, **kwargs)
            if not type(optimizer).__module__.startswith("torch.optim"):
                outcome.refused(f"{type(optimizer).__name__} is an optimizer of its own")
                return original(optimizer, params, *args, **kwargs)
            params = list(params)  # it may be tried twice
            try:
                original(optimizer, params, *args, **kwargs | self._changed(value))
                return outcome.applied(f"{type(optimizer).__name__}({self.argument}={value})")
            except (RuntimeError, TypeError, ValueError) as error:
                outcome.refused(f"{type(optimizer).__name__}: {error}")
            return original(optimizer, params, *args, **kwargs)

        return __init__

    def _changed(self, value: bool) -> dict[str, Any]:
        return {self.argument: value} | ({self.excludes: None} if value else {})

    def live(self, place: Place, value: bool, outcome: Outcome) -> Flip | None:
        chosen = [one for one in place.optimizers() if self._may_change(one, value, outcome)]
        if not chosen:
            return None
        outcome.applied(f"{', '.join(type(one).__name__ for one in chosen)}({self.argument}={value})")
        flips = [_Arguments(one, self._changed(value)) for one in chosen]

        def flip(on: bool) -> None:
            for one in flips:
                one.switch(on)

        return flip

    def _may_change(self, optimizer: Any, value: bool, outcome: Outcome) -> bool:
        """Whether its class would take these parameters so; the one that is made to ask is thrown away."""
        kind = type(optimizer)
        if not kind.__module__.startswith("torch.optim") or self.argument not in optimizer.defaults:
            outcome.refused(f"{kind.__name__} does not take `{self.argument}`")
            return False
        if any(group[self.argument] == value for group in optimizer.param_groups):
            outcome.already(f"`{self.argument}` is {value} in the script")
            return False
        try:
            kind([p for group in optimizer.param_groups for p in group["params"]], **self._changed(value))
        except (RuntimeError, TypeError, ValueError) as error:
            outcome.refused(f"{kind.__name__}: {error}")
            return False
        return True


class _Arguments:
    """Keywords of an optimizer that is in use, and what they were."""

    def __init__(self, optimizer: Any, wanted: dict[str, Any]) -> None:
        self._optimizer = optimizer
        self._wanted = wanted
        self._before = [{name: group[name] for name in wanted} for group in optimizer.param_groups]
        self._device = any(
            bool(group.get("capturable")) or bool(group.get("fused")) for group in optimizer.param_groups
        )

    def switch(self, on: bool) -> None:
        for group, before in zip(self._optimizer.param_groups, self._before, strict=False):
            group.update(self._wanted if on else before)
        for parameter, state in self._optimizer.state.items():
            if hasattr(state.get("step"), "to"):  # a fused update counts its steps on the device
                on_device = self._device or bool(on and self._wanted.get("fused"))
                state["step"] = state["step"].to(parameter.device if on_device else "cpu")


class Fused(OptimizerArgument):
    name = "optimizer.fused"
    written = "Optimizer(…, fused={flag})"
    argument, excludes = "fused", "foreach"


class Foreach(OptimizerArgument):
    name = "optimizer.foreach"
    written = "Optimizer(…, foreach={flag})"
    argument, excludes = "foreach", "fused"


class SetToNone(Switch):
    """Gradients dropped instead of filled with zeros."""

    name = "optimizer.set_to_none"
    written = "optimizer.zero_grad(set_to_none=True), which is the default"
    only = True
    unless = "a parameter has no gradient in some steps: its momentum stands still then"
    needs = "`zero_grad` was not called"

    def apply(self, place: Place, value: bool, outcome: Outcome) -> None:
        optimizer = importlib.import_module("torch.optim.optimizer").Optimizer
        for owner in (optimizer, place.torch.nn.Module):
            replace(owner, "zero_grad", functools.partial(self._dropping, outcome))

    def _dropping(self, outcome: Outcome, original: Any) -> Any:
        def zero_grad(owner: Any, set_to_none: bool = True) -> Any:
            if set_to_none:
                outcome.already("the script drops its gradients")
            else:
                outcome.applied("zero_grad(set_to_none=True)")
            return original(owner, True)

        return zero_grad
