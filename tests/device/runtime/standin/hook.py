"""Gives torch its `cuda` device while torch is being imported.

Torch asks only once whether there is CUDA, while its C half starts, so the library with the answer is loaded
before that. The rest of the device needs the C half and is added after it. The marks in the loop need all of
torch.
"""

import ctypes
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

NATIVE = "gpumon_standin"
SPEEDS: dict[str, Any] = {}


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing itself; notices when torch and its C half have been executed."""

    def __init__(self, after: dict[str, Callable[[ModuleType], None]]) -> None:
        self._after = after
        self._asking = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._after or self._asking:
            return None
        self._asking = True
        try:
            spec = self._find_by_others(fullname, path, target)
        finally:
            self._asking = False
        if spec is None or spec.loader is None:
            return None
        if fullname == "torch._C":
            ctypes.CDLL(os.environ["GPUMON_STANDIN_LIBRARY"])
        execute = spec.loader.exec_module

        def execute_then(module: ModuleType) -> None:
            execute(module)
            if then := self._after.pop(fullname, None):
                then(module)

        spec.loader.exec_module = execute_then  # type: ignore[method-assign]
        return spec

    def _find_by_others(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> importlib.machinery.ModuleSpec | None:
        """Others wait for torch in the same way: they must be asked too, and may ask in turn."""
        for finder in list(sys.meta_path):
            if finder is not self and (spec := finder.find_spec(fullname, path, target)):
                return spec
        return None


def wait_for_torch() -> None:
    if NATIVE in sys.modules:  # forked where torch has the device already
        _read_speeds()
        sys.modules[NATIVE].configure(SPEEDS)
    sys.meta_path.insert(0, _Finder({"torch._C": _add_device, "torch": _add_marks}))


def import_torch() -> None:
    """With the device, for processes forked from this one: each reads its speeds and sets its marks."""
    sys.meta_path.insert(0, finder := _Finder({"torch._C": _add_device}))
    importlib.import_module("torch")
    sys.meta_path.remove(finder)


def _read_speeds() -> None:
    SPEEDS.clear()
    SPEEDS.update(json.loads(os.environ["GPUMON_STANDIN_SPEEDS"]))


def _add_device(torch_c: ModuleType) -> None:
    from standin import cuda

    _read_speeds()
    native = _load(os.environ["GPUMON_STANDIN_LIBRARY"])
    native.install(SPEEDS)
    cuda.attach(torch_c, native, SPEEDS)


def _load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(NATIVE, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[NATIVE] = module
    return module


def _add_marks(torch: ModuleType) -> None:
    from standin import collectives, marks, profiler, storage, truth, vision

    native = sys.modules[NATIVE]
    vision.declare(torch)
    storage.repair(torch)
    profiler.allow(torch)
    collectives.offer(torch, native)
    marks.watch(torch, native)
    truth.tell(torch, native)
