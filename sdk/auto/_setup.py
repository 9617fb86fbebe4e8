"""Where the time before the first step went: imports, data, the model, and the rest.

Imports are timed. The rest is attributed by calls to torch: time before a DataLoader is created went into its
data, time between modules being created, moved or loaded went into the model. It all ends with the first
step.
"""

from __future__ import annotations

import importlib
import importlib.abc
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from .patch import Undo, replace

IMPORTS, DATA, MODEL, OTHER = "imports", "data", "model", "other"
clock = time.monotonic_ns


class SetUp:
    """Collects until the first step. By then all its hooks have been removed."""

    def __init__(self, began: int) -> None:
        self._spent = dict.fromkeys((IMPORTS, DATA, MODEL, OTHER), 0)
        self._last = began
        self._kind = OTHER
        self._asked: dict[str, int] | None = None
        """`_spent` at the last request for a batch: if that batch is trained on, the first step began
        there."""
        self._importing = False
        self.optimizers: list[weakref.ref[Any]] = []
        """Those made before the first step."""
        self._undo: list[Undo] = []
        self._on = True
        finder = _ImportTimer(self)
        sys.meta_path.insert(0, finder)
        self._undo.append(lambda: sys.meta_path.remove(finder) if finder in sys.meta_path else None)

    def watch(self, torch: Any) -> None:
        """torch has been imported."""
        module = torch.nn.Module
        optimizer = importlib.import_module("torch.optim.optimizer").Optimizer
        self._undo += [
            replace(module, "__init__", self._before(self._module_made)),
            *(replace(module, name, self._behind(MODEL)) for name in ("_apply", "train", "load_state_dict")),
            replace(optimizer, "__init__", self._noting_the_optimizer),
            replace(torch.utils.data.DataLoader, "__init__", self._before(lambda: self.note(DATA))),
        ]

    def note(self, kind: str) -> None:
        """The time since the last note went into `kind`."""
        if self._on:
            now = clock()
            self._spent[kind] += now - self._last
            self._last, self._kind = now, kind

    def _noting_the_optimizer(self, original: Any) -> Any:
        make = self._behind(MODEL)(original)

        def call(optimizer: Any, /, *args: Any, **kwargs: Any) -> Any:
            self.optimizers.append(weakref.ref(optimizer))
            return make(optimizer, *args, **kwargs)

        return call

    def _module_made(self) -> None:
        """A module is created. If it is the first in a row, the time before it went elsewhere."""
        kind = MODEL if self._kind == MODEL else OTHER
        self.note(kind)
        self._kind = MODEL

    def asked(self) -> None:
        """A batch is requested, perhaps the first one to train on."""
        self.note(OTHER)
        self._asked = dict(self._spent)

    def arrived(self) -> None:
        self.note(DATA)

    def finish(self, trained_on_batch: bool) -> dict[str, float] | None:
        """The first backward pass begins: the seconds of each kind, returned only once."""
        if not self._on:
            return None
        self.note(OTHER)
        self.remove()
        spent = self._asked if trained_on_batch and self._asked is not None else self._spent
        return {f"{kind}_seconds": ns / 1e9 for kind, ns in spent.items()}

    def remove(self) -> None:
        self._on = False
        while self._undo:
            self._undo.pop()()

    def importing(self, run: Callable[[], None]) -> None:
        """Time an import, unless it is inside another."""
        if self._importing or not self._on:
            return run()
        self._importing = True
        kind = self._kind
        self.note(kind)
        try:
            run()
        finally:
            self._importing = False
            self.note(IMPORTS)
            self._kind = kind

    @property
    def is_importing(self) -> bool:
        return self._importing or not self._on

    def _before(self, note: Callable[[], None]) -> Callable[[Any], Any]:
        def make(original: Any) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                if not self._importing:
                    note()
                return original(*args, **kwargs)

            return call

        return make

    def _behind(self, kind: str) -> Callable[[Any], Any]:
        def make(original: Any) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                try:
                    return original(*args, **kwargs)
                finally:
                    if not self._importing:
                        self.note(kind)

            return call

        return make


class _ImportTimer(importlib.abc.MetaPathFinder):
    """Lets the other finders find a module, and times its execution."""

    def __init__(self, setup: SetUp) -> None:
        self._setup = setup
        self._asking = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Another finder may ask all finders in the same way, including us: answer only once."""
        if self._setup.is_importing or self._asking:
            return None
        self._asking = True
        try:
            spec = self._ask_others(fullname, path, target)
        finally:
            self._asking = False
        if spec is not None:
            self._time(spec)
        return spec

    def _ask_others(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(fullname, path, target)
                if spec is not None:
                    return spec
        return None

    def _time(self, spec: ModuleSpec) -> None:
        loader: Any = spec.loader
        if loader is None or isinstance(loader, type) or not hasattr(loader, "exec_module"):
            return  # a namespace, or a loader shared by all modules of its kind
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            self._setup.importing(lambda: execute(module))

        loader.exec_module = exec_module
