"""Starting the auto way: at once when torch is there, else the moment it is imported."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from . import registry
from .compiling import look_for_torch
from .guard import say_once


def start_auto(monitor_class: Any, name: str | None) -> Any:
    """The auto monitor of this process; made, started and hooked the first time."""
    running = registry.auto()
    if running is not None:
        return running.monitor
    monitor = monitor_class(name, way="auto")
    monitor.late = True
    monitor.start_monitoring()
    if monitor.recorder.on:
        when_imported("torch", lambda torch: hook(monitor, torch))
    return monitor


def hook(monitor: Any, torch: ModuleType) -> None:
    """Put the hooks into torch. A torch that lacks one of them is left as it is."""
    from .auto import Auto
    from .hooks import install

    look_for_torch()
    monitor.observer.watch_torch()
    auto = Auto(monitor, torch.is_grad_enabled)
    try:
        monitor.when_stopped(*install(auto, torch))
    except (AttributeError, ImportError) as error:
        auto.on = False
        say_once(f"this torch cannot be watched without code: {error}")
        return
    monitor.before_stop = auto.finish
    monitor.when_stopped(auto.switch_off)
    registry.set_auto(auto)


def when_imported(name: str, then: Callable[[ModuleType], None]) -> Callable[[], None]:
    """Call `then(module)` once the module is imported; now, if it is. Gives the function that stops
    waiting for it."""
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        then(module)
        return lambda: None
    watcher = _Watcher(name, then)
    sys.meta_path.insert(0, watcher)
    return lambda: sys.meta_path.remove(watcher) if watcher in sys.meta_path else None


class _Watcher(importlib.abc.MetaPathFinder):
    """Lets the real finder find the module, and runs a function behind its execution."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            _run_behind(spec.loader, self._then)
        return spec


def _run_behind(loader: Any, then: Callable[[ModuleType], None]) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        then(module)

    loader.exec_module = exec_module
