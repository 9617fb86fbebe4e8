"""Which model the optimizer trains: found through the calling frames, not by a heap scan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from types import FrameType
from typing import Any

from .classes import torch_class

_FRAMES = 12
"""Chosen: callers of the optimizer to search for the model; frameworks add several."""

_KINDS = 24
"""Chosen: kinds of modules named."""


def trained_model(torch: Any, optimizer: Any, frame: FrameType | None) -> Any:
    """The module that the optimizer trains, or a part of, if a nearby frame holds it."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    return _largest(_candidates(torch, frame), parameters[0]) if parameters else None


def model_part(torch: Any, optimizer: Any, model: Any) -> dict[str, Any]:
    """Size and type of what is trained; also its class if the model is known."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    found: dict[str, Any] = {
        "parameters": sum(p.numel() for p in parameters),
        "parameter_bytes": sum(p.numel() * p.element_size() for p in parameters),
        "tensors": len(parameters),
        "dtype": str(parameters[0].dtype).removeprefix("torch.") if parameters else None,
        "channels_last": any(_is_channels_last(torch, p) for p in parameters),
    }
    if model is not None:
        found |= _describe(model)
    return {key: value for key, value in found.items() if value is not None}


def _is_channels_last(torch: Any, parameter: Any) -> bool:
    """Whether it is a 4-D weight stored channels-last; ambiguous ones (1×1, one channel) do not count."""
    if parameter.dim() != 4 or parameter.shape[1] == 1 or parameter.shape[2] * parameter.shape[3] == 1:
        return False
    return bool(parameter.is_contiguous(memory_format=torch.channels_last))


def _candidates(torch: Any, frame: FrameType | None) -> Iterator[Any]:
    """Modules in the callers' local variables, and in the attributes of those."""
    module = torch.nn.Module
    seen: set[int] = set()
    for _ in range(_FRAMES):
        if frame is None:
            return
        for value in list(frame.f_locals.values()):
            for one in (value, *_held(value)):
                if isinstance(one, module) and id(one) not in seen:
                    seen.add(id(one))
                    yield one
        frame = frame.f_back


def _held(value: Any) -> list[Any]:
    try:
        return list(vars(value).values())[:64]
    except TypeError:
        return []


def _largest(modules: Iterator[Any], parameter: Any) -> Any:
    """The module that holds this parameter and the most others."""
    best, size = None, 0
    for module in modules:
        parameters = list(module.parameters())
        if len(parameters) > size and any(one is parameter for one in parameters):
            best, size = module, len(parameters)
    return best


def _describe(model: Any) -> dict[str, Any]:
    inner = unwrap(model)
    modules = list(inner.modules())
    kinds = Counter(map(_kind, modules))
    return {
        "class": type(inner).__name__,
        "wrapper": type(model).__name__ if inner is not model else None,
        "modules": len(modules),
        "compiled": _is_compiled(model) or any(_is_compiled(one) for one in modules),
        "checkpointing": True
        if any(getattr(one, "gradient_checkpointing", False) for one in modules)
        else None,
        "layers": sorted(kinds)[:_KINDS],
        "layer_counts": dict(kinds.most_common(_KINDS)),
    }


def _kind(module: Any) -> str:
    return torch_class(module) or "Module"


def unwrap(model: Any) -> Any:
    """The user's own module inside DDP, FSDP and torch.compile wrappers."""
    for _ in range(4):
        registered = vars(model).get("_modules", {})
        inner = registered.get("_orig_mod") or (registered.get("module") if len(registered) == 1 else None)
        if inner is None:
            return model
        model = inner
    return model


def _is_compiled(module: Any) -> bool:
    return (
        "_orig_mod" in vars(module).get("_modules", {})
        or getattr(module, "_compiled_call_impl", None) is not None
    )
