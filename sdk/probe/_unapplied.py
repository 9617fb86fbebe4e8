"""Gradients that backward computes and nobody applies: of layers that were meant to be frozen, mostly."""

from __future__ import annotations

import weakref
from typing import Any

from ._model import unwrap

_UPDATES = 24
"""Chosen: in-place changes of an applied parameter to wait for. By then the optimizers of other parts, which
take turns with the first one, have changed theirs."""
_NAMED = 4
"""Chosen: parts of the model named."""


class Unapplied:
    """Parameters of the model with a gradient at the first update of an optimizer that does not have them,
    and still what they were many updates later. Torch counts in-place changes."""

    def __init__(self, model: Any, optimizer: Any) -> None:
        owned = {id(one) for group in optimizer.param_groups for one in group["params"]}
        self._model = weakref.ref(unwrap(model))
        learning = [one for one in unwrap(model).named_parameters() if one[1].grad is not None]
        self._idle = {name: (weakref.ref(one), _state(one)) for name, one in learning if id(one) not in owned}
        self._trained = [(weakref.ref(one), one._version) for _, one in learning if id(one) in owned][:1]
        order = [name in self._idle for name, _ in learning]
        self._first = order == sorted(order, reverse=True)
        self._sizes = {name: one.numel() for name, one in learning}
        self.known: dict[str, Any] | None = None

    def look(self) -> None:
        """Once a second; it forgets what is changed after all."""
        if not self._idle or not self._trained:
            return
        trained = self._trained[0][0]()
        if trained is None or trained._version - self._trained[0][1] < _UPDATES:
            return
        self._idle = {name: one for name, one in self._idle.items() if _is_idle(*one)}
        self.known = self._shares() if self._idle else None

    def _shares(self) -> dict[str, Any]:
        sizes = self._sizes
        return {
            "tensors": round(len(self._idle) / len(sizes), 3),
            "parameters": round(sum(sizes[name] for name in self._idle) / max(1, sum(sizes.values())), 3),
            "first": self._first,
            "names": self._names(),
        }

    def _names(self) -> list[str]:
        """The model's own parts all of whose gradients are left, if these are all there are."""
        tops = {name.partition(".")[0] for name in self._idle}
        rest = {name.partition(".")[0] for name in self._sizes if name not in self._idle}
        return sorted(tops) if not tops & rest and len(tops) <= _NAMED else []


def _state(parameter: Any) -> tuple[int, Any]:
    """What an update changes; through `.data` it is not counted. A device is not asked for its values."""
    return parameter._version, parameter.detach().flatten()[0].item() if _is_here(parameter) else None


def _is_here(parameter: Any) -> bool:
    return bool(parameter.device.type == "cpu" and parameter.numel())


def _is_idle(parameter: Any, before: tuple[int, Any]) -> bool:
    now = parameter()
    return now is not None and now.requires_grad and _state(now) == before
