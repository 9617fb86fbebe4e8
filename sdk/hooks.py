"""Where the auto way touches torch: every patch is here, each can be undone, each is nothing inside
compiled code and in threads that do not train."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from threading import get_ident
from typing import Any

from .auto import Auto, LoaderState
from .compiling import Compiling, untraced
from .core import NATIVE
from .launch import when_imported
from .phases import CHECKPOINT, GRAD_NORM

Undo = Callable[[], object]


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> Undo:
    """Put `make(original)` in the place of `owner.name`; gives the function that puts it back."""
    original = getattr(owner, name)
    wrapped = functools.wraps(original)(make(original))
    setattr(owner, name, wrapped)
    return lambda: setattr(owner, name, original) if getattr(owner, name) is wrapped else None


def install(auto: Auto, torch: Any) -> list[Undo]:
    """All hooks of the auto way."""
    data = torch.utils.data.dataloader
    undo = [
        replace(data.DataLoader, "__iter__", lambda original: _iter(auto, original)),
        replace(data._BaseDataLoaderIter, "__next__", lambda original: _next(auto, original)),
        replace(torch.autograd, "backward", lambda original: _backward(auto, original)),
        *_optimizer(auto),
    ]
    for owner, name, phase in (
        (torch, "save", CHECKPOINT),
        (torch.nn.utils, "clip_grad_norm_", GRAD_NORM),
    ):
        undo.append(replace(owner, name, _timed(auto, phase)))
        auto.recorder.totals.use(phase)
    return undo


def _iter(auto: Auto, original: Any) -> Any:
    def __iter__(loader: Any) -> Any:
        if not auto.ours():
            return original(loader)
        state, asked = auto.guarded(auto.iterating, loader) or (LoaderState(), False)
        iterator = auto.monitor.loaders.started(loader, original) if asked else original(loader)
        iterator._gpumon_state = state
        return iterator

    return __iter__


def _next(auto: Auto, original: Any) -> Any:
    asks, got, recorder = auto.asks, auto.got, auto.recorder

    def __next__(iterator: Any) -> Any:
        if not asks(iterator):
            return unusual(iterator) if get_ident() == recorder.thread else original(iterator)
        try:
            batch = original(iterator)
        except BaseException:
            auto.nothing(True)
            raise
        got(batch)
        return batch

    def unusual(iterator: Any) -> Any:
        state = getattr(iterator, "_gpumon_state", None) or _new_state(iterator)
        asked = auto.asked(state)
        try:
            batch = original(iterator)
        except BaseException:
            auto.nothing(asked)
            raise
        auto.guarded(auto.received, state, iterator, asked, batch)
        return batch

    return __next__


def _new_state(iterator: Any) -> LoaderState:
    """For an iterator made before the hooks were in."""
    state = iterator._gpumon_state = LoaderState()
    return state


def _backward(auto: Auto, original: Any) -> Any:
    goes, came = auto.goes_backward, auto.came_back

    def backward(*args: Any, **kwargs: Any) -> Any:
        if Compiling.check():
            return original(*args, **kwargs)
        before = goes()
        try:
            return original(*args, **kwargs)
        finally:
            came(before)

    return backward


def _optimizer(auto: Auto) -> list[Undo]:
    """The C functions themselves, if torch's compiler takes them for nothing; it is asked when it is there.
    Else Python around them, which it can trace."""
    module = importlib.import_module("torch.optim.optimizer")
    taken: list[Undo] = []

    def put(before: Any, after: Any) -> None:
        taken.append(module.register_optimizer_step_pre_hook(before).remove)
        taken.append(module.register_optimizer_step_post_hook(after).remove)

    def take_out() -> None:
        while taken:
            taken.pop()()

    def compiler_loaded(_: Any) -> None:
        if not untraced(*auto.hooks):
            take_out()
            put(*_traceable(auto))

    if not NATIVE:
        put(*_traceable(auto))
        return [take_out]
    put(*auto.hooks)
    return [when_imported("torch._dynamo", compiler_loaded), take_out]


def _traceable(auto: Auto) -> tuple[Callable[..., None], Callable[..., None]]:
    begins, ends = auto.hooks

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not Compiling.check():
            begins(optimizer, args, kwargs)

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not Compiling.check():
            ends(optimizer, args, kwargs)

    return before, after


def _timed(auto: Auto, phase: int) -> Callable[[Any], Any]:
    """A call whose time is a phase of its own."""
    recorder = auto.recorder

    def make(original: Any) -> Any:
        def timed(*args: Any, **kwargs: Any) -> Any:
            if Compiling.check() or get_ident() != recorder.thread:
                return original(*args, **kwargs)
            before = recorder.phase
            recorder.mark(phase)
            try:
                return original(*args, **kwargs)
            finally:
                recorder.mark(before)

        return timed

    return make
