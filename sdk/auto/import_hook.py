"""Run something the moment a module is imported."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any


def when_imported(name: str, then: Callable[[ModuleType], None]) -> Callable[[], None]:
    """Call `then(module)` once the module is imported, or now if it already is. Returns a function that
    stops waiting."""
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        then(module)
        return lambda: None
    return _waiting.add(name, then)


class _Waiting(importlib.abc.MetaPathFinder):
    """Lets the real finder find a module, and runs functions after its execution. Being found is not being
    imported: libraries check whether a module exists long before anyone imports it.

    One finder for all modules waited for: it is asked about every import of the process, hundreds of which
    follow when a library is loaded."""

    def __init__(self) -> None:
        self._then: dict[str, list[Callable[[ModuleType], None]]] = {}
        self._asking: set[tuple[int, str]] = set()
        """Threads asking the other finders for a module, which must not ask us back."""

    def add(self, name: str, then: Callable[[ModuleType], None]) -> Callable[[], None]:
        """Wait for this module; returns a function that stops waiting."""
        self._then.setdefault(name, []).append(then)
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        sys.meta_path.insert(0, self)  # before finders that came since, or they would find it first
        return lambda: self._remove(name, then)

    def _remove(self, name: str, then: Callable[[ModuleType], None]) -> None:
        waiting = self._then.get(name, [])
        if then in waiting:
            waiting.remove(then)
        if not waiting:
            self._then.pop(name, None)
        if not self._then and self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._then:
            return None
        asking = threading.get_ident(), fullname
        if asking in self._asking:
            return None
        self._asking.add(asking)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._asking.discard(asking)
        if spec is not None and spec.loader is not None:
            _run_behind(spec.loader, partial(self._imported, fullname))
        return spec

    def _imported(self, name: str, module: ModuleType) -> None:
        for then in list(self._then.get(name, ())):
            self._remove(name, then)
            then(module)


_waiting = _Waiting()


def _run_behind(loader: Any, then: Callable[[ModuleType], None]) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        then(module)

    loader.exec_module = exec_module
