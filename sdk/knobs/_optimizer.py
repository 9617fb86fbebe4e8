"""Knobs of torch's own optimizers."""

from __future__ import annotations

import functools
import importlib
import inspect
import weakref
from typing import Any

from ..auto.patch import replace
from .knob import ROUNDING, Flip, Outcome, Place, Switch

_SCALES = "_step_supports_amp_scaling"
"""Tells a gradient scaler to leave the scaling to the update: only a fused one can do it."""


class OptimizerArgument(Switch):
    """A keyword of torch's optimizers, given to each of them as it is made."""

    effect = ROUNDING
    argument = ""
    excludes = ""
    """The keyword that cannot be on at the same time."""

    @property
    def needs(self) -> str:  # type: ignore[override]
        return f"no optimizer of torch that takes `{self.argument}` was made"

    def apply(self, place: Place, value: bool, outcome: Outcome) -> Flip:
        made = _Made()
        for kind in vars(place.torch.optim).values():
            if isinstance(kind, type) and self._takes_it(kind):
                replace(kind, "__init__", functools.partial(self._given, value, outcome, made))
        return made.switch

    def _takes_it(self, kind: type) -> bool:
        return "__init__" in vars(kind) and self.argument in inspect.signature(kind.__init__).parameters  # type: ignore[misc]

    def _given(self, value: bool, outcome: Outcome, made: _Made, original: Any) -> Any:
        def __init__(optimizer: Any, params: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get(self.argument) == value:
                outcome.already(f"`{self.argument}` is {value} in the script")
                return original(optimizer, params, *args, **kwargs)
            if not type(optimizer).__module__.startswith("torch.optim"):
                outcome.refused(f"{type(optimizer).__name__} is an optimizer of its own")
                return original(optimizer, params, *args, **kwargs)
            params = list(params)  # it may be tried twice
            changed = self._changed(value)
            try:
                original(optimizer, params, *args, **kwargs | changed)
            except (RuntimeError, TypeError, ValueError) as error:
                outcome.refused(f"{type(optimizer).__name__}: {error}")
                return original(optimizer, params, *args, **kwargs)
            asked = {name: kwargs.get(name) for name in changed}
            made.add(_Arguments(optimizer, changed, [asked for _ in optimizer.param_groups]))
            return outcome.applied(f"{type(optimizer).__name__}({self.argument}={value})")

        return __init__

    def _changed(self, value: bool) -> dict[str, Any]:
        return {self.argument: value} | ({self.excludes: None} if value else {})

    def live(self, place: Place, value: bool, outcome: Outcome) -> Flip | None:
        chosen = [one for one in place.optimizers() if self._may_change(one, value, outcome)]
        if not chosen:
            return None
        outcome.applied(f"{', '.join(type(one).__name__ for one in chosen)}({self.argument}={value})")
        changed, made = self._changed(value), _Made(on=False)
        for one in chosen:
            made.add(
                _Arguments(
                    one, changed, [{name: group[name] for name in changed} for group in one.param_groups]
                )
            )
        return made.switch

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


class _Made:
    """Optimizers that are switched together."""

    def __init__(self, on: bool = True) -> None:
        self._on = on
        self._all: list[_Arguments] = []

    def add(self, one: _Arguments) -> None:
        self._all.append(one)
        if not self._on:
            one.switch(False)

    def switch(self, on: bool) -> None:
        self._on = on
        for one in self._all:
            one.switch(on)


class _Arguments:
    """Keywords of an optimizer that is in use, and what the script gave it instead."""

    def __init__(self, optimizer: Any, wanted: dict[str, Any], asked: list[dict[str, Any]]) -> None:
        self._optimizer = weakref.ref(optimizer)
        self._wanted = wanted
        self._asked = asked
        self._device = any(bool(group.get("capturable")) for group in optimizer.param_groups)
        self._device |= any(bool(one.get("fused")) for one in asked)
        self._scales = bool(getattr(optimizer, _SCALES, False))

    def switch(self, on: bool) -> None:
        optimizer = self._optimizer()
        if optimizer is None:
            return
        for group, asked in zip(optimizer.param_groups, self._asked, strict=False):
            group.update(self._wanted if on else asked)
        if self._scales:
            setattr(optimizer, _SCALES, any(bool(group.get("fused")) for group in optimizer.param_groups))
        for parameter, state in optimizer.state.items():
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
