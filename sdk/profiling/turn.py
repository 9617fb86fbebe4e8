"""One profiler can run in a process: ours takes its turn when nobody else has it, and makes way at once."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Callable, Iterator
from typing import Any

_QUIET = "KINETO_LOG_LEVEL"
_MARK = "_gpumon"
"""An attribute of the hook that is in place while a profiler of ours runs."""


def is_ours(torch: Any) -> bool:
    """Whether a profiler of ours runs."""
    return hasattr(_class(torch)._prepare_trace, _MARK)


def is_free(torch: Any) -> bool:
    """Whether no profiler runs, as far as torch itself knows it."""
    module = torch.autograd.profiler
    return not getattr(module, "_is_profiler_enabled", True) and hasattr(module.profile, "_prepare_trace")


def is_prepared(torch: Any) -> bool:
    """Whether the script has a profiler that warms up, which torch knows nothing of. This looks through all
    objects of the process: only for a moment at which somebody asks for a window."""
    made = [one for one in gc.get_objects() if issubclass(type(one), torch.profiler.profile)]
    return any(_warms_up(torch, one) for one in made)


def _warms_up(torch: Any, one: Any) -> bool:
    cycle = getattr(one, "profiler", None)
    warm_up = getattr(one, "current_action", None) == torch.profiler.ProfilerAction.WARMUP
    return warm_up and cycle is not None and getattr(cycle, "kineto_results", None) is None


def make_way(torch: Any, wanted_elsewhere: Callable[[], None]) -> Callable[[], None]:
    """While ours runs, the next profiler that starts ends it first; returns what ends this."""
    profile = _class(torch)
    original = profile._prepare_trace

    def restore() -> None:
        profile._prepare_trace = original

    def prepare(self: Any) -> Any:
        restore()
        with contextlib.suppress(Exception):  # ours may fail to end; the script's own must begin
            wanted_elsewhere()
        return original(self)

    setattr(prepare, _MARK, True)
    profile._prepare_trace = prepare
    return restore


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """The profiler's library writes to stderr when it starts and stops; a training's output is its own."""
    if _QUIET in os.environ:
        yield
        return
    os.environ[_QUIET] = "99"
    try:
        yield
    finally:
        del os.environ[_QUIET]


def _class(torch: Any) -> Any:
    return torch.autograd.profiler.profile
