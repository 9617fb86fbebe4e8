"""Where automatic instrumentation touches torch. Every patch is here; each can be undone and is a no-op
inside compiled code and in threads that do not train."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from threading import get_ident
from typing import Any

from ..compiler.tracing import Compiling, trace_as_no_op
from ..core import NATIVE
from ..loader.maker import remember_maker
from ._loader_roles import TRAIN, LoaderState
from ._recognizer import StepRecognizer
from .import_hook import when_imported
from .patch import Undo, replace
from .side_calls import side_calls, when_there


def install(steps: StepRecognizer, torch: Any) -> list[Undo]:
    """All hooks of automatic instrumentation."""
    data = torch.utils.data.dataloader
    return [
        replace(data.DataLoader, "__init__", lambda original: _loader_made(steps, original)),
        replace(data.DataLoader, "__iter__", lambda original: _iter(steps, original)),
        replace(data._BaseDataLoaderIter, "__next__", lambda original: _next(steps, original)),
        replace(torch.autograd, "backward", lambda original: _backward(steps, original)),
        replace(torch.amp.GradScaler, "step", lambda original: _scaler(steps, original)),
        replace(torch, "compile", lambda original: _compile(steps, original)),
        *_optimizer(steps),
        *when_there("fastai.optimizer", "Optimizer", ("step",), lambda original: _own_step(steps, original)),
        *side_calls(steps, torch),
    ]


def _loader_made(steps: StepRecognizer, original: Any) -> Any:
    def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:
        original(loader, *args, **kwargs)
        steps.guarded(remember_maker, loader, sys._getframe(1))

    return __init__


def _iter(steps: StepRecognizer, original: Any) -> Any:
    def __iter__(loader: Any) -> Any:
        if not steps.ours():
            return original(loader)
        state, asked = steps.guarded(steps.iterating, loader) or (LoaderState(), False)
        if asked:
            iterator = steps.session.loaders.started(loader, original, state.role == TRAIN)
        else:
            iterator = steps.session.loaders.evaluating(loader, original)
        iterator._gpumon_state = state
        return iterator

    return __iter__


def _next(steps: StepRecognizer, original: Any) -> Any:
    request, received, recorder = steps.usual_request, steps.usual_batch, steps.recorder

    def __next__(iterator: Any) -> Any:
        if not request(iterator):
            return unusual(iterator) if get_ident() == recorder.thread else original(iterator)
        try:
            batch = original(iterator)
        except BaseException:
            steps.no_batch(True)
            raise
        received(batch)
        return batch

    def unusual(iterator: Any) -> Any:
        state = getattr(iterator, "_gpumon_state", None) or _new_state(iterator)
        asked = steps.batch_requested(state)
        take = original if asked else steps.session.loaders.evaluation_starts.timed(original)
        try:
            batch = take(iterator)
        except BaseException:
            steps.no_batch(asked)
            raise
        steps.guarded(steps.received, state, iterator, asked, batch)
        return batch

    return __next__


def _new_state(iterator: Any) -> LoaderState:
    """For an iterator created before the hooks were installed."""
    state = iterator._gpumon_state = LoaderState()
    return state


def _backward(steps: StepRecognizer, original: Any) -> Any:
    begins, ends = steps.backward_begins, steps.backward_ends

    def backward(*args: Any, **kwargs: Any) -> Any:
        if Compiling.check():
            return original(*args, **kwargs)
        if not steps.stepped:
            steps.guarded(steps.by_hand.find, args[0] if args else kwargs.get("tensors"))
        before = begins()
        try:
            return original(*args, **kwargs)
        finally:
            ends(before)

    return backward


def _optimizer(steps: StepRecognizer) -> list[Undo]:
    """Hook the C functions themselves if torch's compiler, asked once it is loaded, traces them as no-ops;
    else Python functions around them, which it can trace."""
    module = importlib.import_module("torch.optim.optimizer")
    taken: list[Undo] = []

    def put(before: Any, after: Any) -> None:
        taken.append(module.register_optimizer_step_pre_hook(before).remove)
        taken.append(module.register_optimizer_step_post_hook(after).remove)

    def take_out() -> None:
        while taken:
            taken.pop()()

    def compiler_loaded(_: Any) -> None:
        if not trace_as_no_op(*steps.hooks):
            take_out()
            put(*_traceable(steps))

    if not NATIVE:
        put(*_traceable(steps))
        return [take_out]
    put(*steps.hooks)
    return [when_imported("torch._dynamo", compiler_loaded), take_out]


def _traceable(steps: StepRecognizer) -> tuple[Callable[..., None], Callable[..., None]]:
    begins, ends = steps.hooks

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not Compiling.check():
            begins(optimizer, args, kwargs)

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not Compiling.check():
            ends(optimizer, args, kwargs)

    return before, after


def _own_step(steps: StepRecognizer, original: Any) -> Any:
    """An optimizer that is not a torch one, so torch's hooks do not see it."""

    def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if Compiling.check():
            return original(optimizer, *args, **kwargs)
        steps.optimizer_begins(optimizer, args, kwargs)
        done = original(optimizer, *args, **kwargs)
        steps.optimizer_ends(optimizer, args, kwargs)
        return done

    return step


def _scaler(steps: StepRecognizer, original: Any) -> Any:
    """A gradient scaler steps its optimizer or skips it; if skipped, the optimizer's own hooks do not run."""

    def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        steps.optimizer_begins(optimizer, args, kwargs)
        try:
            return original(scaler, optimizer, *args, **kwargs)
        finally:
            if steps.ours():
                steps.guarded(steps.skipped, optimizer)

    return step


def _compile(steps: StepRecognizer, original: Any) -> Any:
    def compile(*args: Any, **kwargs: Any) -> Any:
        steps.guarded(steps.modules.compiling)
        return original(*args, **kwargs)

    return compile
