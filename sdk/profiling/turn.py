"""A process can run only one profiler: ours runs when no other does, and yields at once."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Callable, Iterator
from typing import Any

_QUIET = "KINETO_LOG_LEVEL"
_MARK = "_gpumon"
"""Attribute of the hook that is installed while one of our profilers runs."""


def is_ours(torch: Any) -> bool:
    """Whether one of our profilers is running."""
    return hasattr(_class(torch)._prepare_trace, _MARK)


def is_free(torch: Any) -> bool:
    """Whether no profiler is running, as far as torch itself knows."""
    module = torch.autograd.profiler
    return not getattr(module, "_is_profiler_enabled", True) and hasattr(module.profile, "_prepare_trace")


def is_prepared(torch: Any) -> bool:
    """Whether the script has a profiler that is warming up, which torch does not track. This scans all
    objects in the process, so call it only when somebody requests a window."""
    made = [one for one in gc.get_objects() if issubclass(type(one), torch.profiler.profile)]
    return any(_warms_up(torch, one) for one in made)


def _warms_up(torch: Any, one: Any) -> bool:
    cycle = getattr(one, "profiler", None)
    warm_up = getattr(one, "current_action", None) == torch.profiler.ProfilerAction.WARMUP
    return warm_up and cycle is not None and getattr(cycle, "kineto_results", None) is None


def make_way(torch: Any, wanted_elsewhere: Callable[[], None]) -> Callable[[], None]:
    """While ours runs, the next profiler to start ends it first; returns a function that undoes this."""
    profile = _class(torch)
    original = profile._prepare_trace

    def restore() -> None:
        profile._prepare_trace = original

    def prepare(self: Any) -> Any:
        restore()
        with contextlib.suppress(Exception):  # ours may fail to end; the script's must begin
            wanted_elsewhere()
        return original(self)

    setattr(prepare, _MARK, True)
    profile._prepare_trace = prepare
    return restore


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """The profiler's library writes to stderr when it starts and stops; keep that out of the training's
    output."""
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
