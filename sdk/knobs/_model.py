"""Knobs of the model: applied behind the first step to the outermost modules that were called in it."""

from __future__ import annotations

import weakref
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from ..auto.patch import Undo, replace
from .hooks import after_first_step
from .knob import CHANGES_TRAINING, ROUNDING, Knob, Outcome, Place, Switch, attempt

_PLACE = "_compiled_call_impl"
"""torch's own place for another way to call a module; it is in no state dict, copy or pickle."""
_NEEDS = "no module with parameters was called before the first step"


class _FirstStep:
    """Notes the outermost modules of the first step, then lets go and hands them on."""

    def __init__(self, torch: Any, then: Callable[[list[Any]], None]) -> None:
        self._torch = torch
        self._then = then
        self._inside = False
        self._found: list[weakref.ref[Any]] = []
        self._undo: Undo = replace(torch.nn.Module, "__call__", self._calling)
        after_first_step(self._over)

    def _calling(self, original: Any) -> Any:
        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
            if self._inside or not self._torch.is_grad_enabled() or not module.training:
                return original(module, *args, **kwargs)
            self._inside = True
            try:
                return original(module, *args, **kwargs)
            finally:
                self._inside = False
                self._note(module)

        return __call__

    def _note(self, module: Any) -> None:
        if any(ref() is module for ref in self._found) or next(iter(module.parameters()), None) is None:
            return
        self._found.append(weakref.ref(module))

    def _over(self) -> None:
        self._undo()
        self._then([module for ref in self._found if (module := ref()) is not None])


class ModelKnob(Knob):
    needs = _NEEDS

    def apply(self, place: Place, value: Any, outcome: Outcome) -> None:
        def then(modules: list[Any]) -> None:
            for module in modules:
                attempt(outcome, self.change, place.torch, module, value, outcome)

        _FirstStep(place.torch, then)

    @abstractmethod
    def change(self, torch: Any, module: Any, value: Any, outcome: Outcome) -> None:
        """Of one of the outermost modules, behind the first step."""


class Compiled(ModelKnob, Switch):
    """What cannot be compiled runs as before."""

    name = "model.compiled"
    written = "model.compile(), or model = torch.compile(model)"
    effect = ROUNDING
    only = True

    def change(self, torch: Any, module: Any, value: bool, outcome: Outcome) -> None:
        if vars(module).get(_PLACE) is not None or hasattr(module, "_orig_mod"):
            return outcome.already(f"{type(module).__name__} is compiled")
        torch._dynamo.config.suppress_errors = True
        module.compile()
        return outcome.applied(f"torch.compile({type(module).__name__})")


class ChannelsLast(ModelKnob, Switch):
    name = "model.channels_last"
    written = "model = model.to(memory_format=torch.channels_last)"
    effect = ROUNDING
    only = True

    def change(self, torch: Any, module: Any, value: bool, outcome: Outcome) -> None:
        if not any(one.dim() == 4 for one in module.parameters()):
            return outcome.refused(f"{type(module).__name__} has no convolution over images")
        module.to(memory_format=torch.channels_last)
        return outcome.applied(type(module).__name__)


class Autocast(ModelKnob):
    """Fewer digits in the passes: another training, not another rounding of the same one."""

    name = "precision.autocast"
    written = "with torch.autocast(device, dtype=torch.bfloat16): around the forward pass"
    takes = "bf16"
    effect = CHANGES_TRAINING

    def read(self, text: str) -> str:
        if text in ("fp16", "float16"):
            raise ValueError(f"{self.name}: fp16 needs a gradient scaler in the loop; bf16 needs none")
        if text not in ("bf16", "bfloat16"):
            raise ValueError(f"{self.name} is bf16, not {text}")
        return "bf16"

    def change(self, torch: Any, module: Any, value: str, outcome: Outcome) -> None:
        kind = next(module.parameters()).device.type
        context = torch.autocast(kind, dtype=torch.bfloat16)
        vars(module)[_PLACE] = _In(module, context, vars(module).get(_PLACE))
        outcome.applied(f"{type(module).__name__} on {kind}")


class _In:
    """Calls a module in a context. Copied or pickled it is nothing."""

    def __init__(self, module: Any, context: Any, before: Any) -> None:
        self._module = weakref.ref(module)
        self._context = context
        self._before = before

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module: Any = self._module()
        with self._context:
            return (self._before or module._call_impl)(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()
