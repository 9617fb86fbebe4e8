"""Where the auto way touches torch: every patch is here, each can be undone, each is nothing inside
compiled code and in threads that do not train."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from threading import get_ident
from typing import Any

from .auto import TRAIN, Auto, LoaderState
from .phases import (
    BACKWARD,
    BETWEEN,
    CHECKPOINT,
    COMPLETE,
    DATA,
    FORWARD,
    GRAD_NORM,
    LIVE,
    OPTIMIZER,
    OTHER,
    SHIFT,
)
from .ring import H_CLOSED, H_LIVE
from .tape import clock

Undo = Callable[[], object]
_COMPLETE = COMPLETE << SHIFT
_DATA, _FORWARD, _BACKWARD, _OPTIMIZER, _BETWEEN, _OTHER = (
    LIVE[phase] for phase in (DATA, FORWARD, BACKWARD, OPTIMIZER, BETWEEN, OTHER)
)


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> Undo:
    """Put `make(original)` in the place of `owner.name`; gives the function that puts it back."""
    original = getattr(owner, name)
    wrapped = functools.wraps(original)(make(original))
    setattr(owner, name, wrapped)
    return lambda: setattr(owner, name, original) if getattr(owner, name) is wrapped else None


def install(auto: Auto, torch: Any) -> list[Undo]:
    """All hooks of the auto way."""
    compiling = torch.compiler.is_dynamo_compiling
    data = torch.utils.data.dataloader
    undo = [
        replace(data.DataLoader, "__iter__", lambda original: _iter(auto, original)),
        replace(data._BaseDataLoaderIter, "__next__", lambda original: _next(auto, original)),
        replace(torch.autograd, "backward", lambda original: _backward(auto, original, compiling)),
        *_optimizer(auto, compiling),
    ]
    for owner, name, phase in (
        (torch, "save", CHECKPOINT),
        (torch.nn.utils, "clip_grad_norm_", GRAD_NORM),
    ):
        undo.append(replace(owner, name, _timed(auto, phase, compiling)))
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
    recorder = auto.recorder
    grad_enabled = auto.grad_enabled

    def __next__(iterator: Any) -> Any:
        if get_ident() != recorder.thread:
            return original(iterator)
        state = getattr(iterator, "_gpumon_state", None) or _new_state(iterator)
        usual = auto.updated and state.role == TRAIN and grad_enabled() and not recorder.stack
        if usual:  # Auto.asked and its consequences
            auto.work = auto.updated = False
            auto.batches = 0
            now = clock()
            recorder.append(now | _COMPLETE)
            recorder.words[H_LIVE] = now | _DATA
            recorder.words[H_CLOSED] = recorder.closed = recorder.closed + 1
            asked = True
        else:
            asked = auto.asked(state)
        try:
            batch = original(iterator)
        except BaseException:
            auto.nothing(asked)
            raise
        try:
            if usual:  # Auto.got
                now = clock()
                recorder.append(now | _FORWARD)
                recorder.words[H_LIVE] = now | _FORWARD
                if recorder.device is not None:
                    recorder.device.begin()
                auto.batches = 1
                auto.size.count(batch, recorder)
                if now > recorder.horizon:
                    recorder.play(now)
            else:
                auto.got(state, asked, batch)
        except Exception as error:  # noqa: BLE001 — a batch of any kind may come; training goes on
            auto.failed(error)
        return batch

    return __next__


def _new_state(iterator: Any) -> LoaderState:
    """For an iterator made before the hooks were in."""
    state = iterator._gpumon_state = LoaderState()
    return state


def _backward(auto: Auto, original: Any, compiling: Callable[[], bool]) -> Any:
    first = True
    recorder = auto.recorder

    def backward(*args: Any, **kwargs: Any) -> Any:
        nonlocal first
        if compiling():
            return original(*args, **kwargs)
        if first and auto.on:
            first = False
            auto.guarded(auto.begin_training)
        if get_ident() != recorder.thread:
            return original(*args, **kwargs)
        before = recorder.words[H_LIVE] >> SHIFT
        if before != FORWARD or auto.fresh:
            auto.went_backward(before)
        auto.backwards += 1
        auto.work = True
        now = clock()
        recorder.append(now | _BACKWARD)
        recorder.words[H_LIVE] = now | _BACKWARD
        try:
            return original(*args, **kwargs)
        finally:
            now = clock()
            mark = now | (_OPTIMIZER if before == OPTIMIZER else _OTHER)
            recorder.append(mark)
            recorder.words[H_LIVE] = mark
            if now > recorder.horizon:
                recorder.play(now)

    return backward


def _optimizer(auto: Auto, compiling: Callable[[], bool]) -> list[Undo]:
    recorder = auto.recorder

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        if get_ident() == recorder.thread and not compiling():
            now = clock()
            recorder.append(now | _OPTIMIZER)
            recorder.words[H_LIVE] = now | _OPTIMIZER

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        if compiling() or get_ident() != recorder.thread:
            return
        try:
            if recorder.device is not None:
                recorder.submitted()
            if auto.batches and id(optimizer) == auto.primary and not auto.updated and not auto.inner:
                auto.updated = True  # Auto.optimizer_ends
                now = clock()
                recorder.append(now | _BETWEEN)
                recorder.words[H_LIVE] = now | _BETWEEN
            else:
                auto.optimizer_ends(optimizer)
        except Exception as error:  # noqa: BLE001 — a commit may come here; training goes on
            auto.failed(error)

    module = importlib.import_module("torch.optim.optimizer")
    return [
        module.register_optimizer_step_pre_hook(before).remove,
        module.register_optimizer_step_post_hook(after).remove,
    ]


def _timed(auto: Auto, phase: int, compiling: Callable[[], bool]) -> Callable[[Any], Any]:
    """A call whose time is a phase of its own."""
    recorder = auto.recorder

    def make(original: Any) -> Any:
        def timed(*args: Any, **kwargs: Any) -> Any:
            if compiling() or get_ident() != recorder.thread:
                return original(*args, **kwargs)
            before = recorder.words[H_LIVE] >> SHIFT
            recorder.mark(phase)
            try:
                return original(*args, **kwargs)
            finally:
                recorder.mark(before)

        return timed

    return make
