"""Odd calls to the C core, in a process that `tests.faults.fuzz_core` starts with the sanitizers loaded.

    python odd_calls.py NATIVE CALLS SEED

Everything in the module is called as nobody would call it: with wrong types and numbers of arguments, and
objects that raise, call back, or go away in the meantime. Python exceptions are fine; anything the sanitizers
find is not.
"""

from __future__ import annotations

import gc
import importlib.util
import random
import sys
from array import array
from types import ModuleType
from typing import Any

from sdk.writer import MemoryRing


class Raises:
    """Raises whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __len__(self) -> int:
        raise KeyError("length")

    def __getitem__(self, at: Any) -> Any:
        raise ZeroDivisionError

    def __index__(self) -> int:
        raise ValueError("index")

    def __bool__(self) -> bool:
        raise OSError


class Huge:
    def __len__(self) -> int:
        return sys.maxsize

    def __getitem__(self, at: Any) -> Any:
        return self

    def __index__(self) -> int:
        return 2**70


class Ring:
    """Memory that is not what it claims: too short, read-only, gone, or different every time."""

    def __init__(self, chance: random.Random, core: Any) -> None:
        self._chance, self._core = chance, core

    @property
    def slots(self) -> Any:
        return self._chance.choice((0, 1, 64, -1, 2**64, None, "x"))

    @property
    def words(self) -> Any:
        kind = self._chance.randrange(6)
        if kind == 0:
            self._core.use(None)  # while it asks
        if kind == 1:
            raise MemoryError
        made = (
            array("Q", [0] * 9000),
            bytearray(8),
            b"read only",
            MemoryRing().words,
            None,
            bytearray(80000),
        )
        return self._chance.choice(made)


class Odd:
    def __init__(self, module: ModuleType, seed: int) -> None:
        self.chance = random.Random(seed)
        self.module = module
        kinds = (module.Core, module.Marks, module.Phase, module.Batches, module.Loop)
        self.names = {kind: [one for one in vars(kind) if one not in LEFT_OUT] for kind in kinds}
        self.core = self._core()
        self.objects: list[Any] = [self.core]

    def _core(self) -> Any:
        odd = self

        class Probe(self.module.Core):  # type: ignore[name-defined, misc]
            """What the core calls back: it raises, calls again, or takes the ring away."""

            def _answer(self, *given: Any, **named: Any) -> Any:
                kind = odd.chance.randrange(12)
                if kind == 0:
                    raise odd.chance.choice((ValueError, KeyboardInterrupt, SystemExit, MemoryError))
                if kind == 1:
                    self.use(odd.chance.choice((None, MemoryRing())))
                if kind == 2 and sys.getrecursionlimit() > 60:
                    return self.step()
                return odd.value()

            periodic = before_commit = ring_full = failed = new_lap = step_details = _answer
            device_mark = measure_batch = _answer

        made = Probe()
        made.use(MemoryRing())
        return made

    def value(self) -> Any:
        plain: tuple[Any, ...] = (
            None, True, 0, 1, -1, 2, 5, 255, 256, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**70), 0.0,
            -1.5, float("nan"), float("inf"), "", "data", "forward", "\ud800", "x" * 5000, b"", b"start",
            "start", "stop", (), (0,), (0, 1, "a"), [], [[1, 2], [3]], {}, {"a": [1]}, object, len,
            iter([1, 2]), gc,
        )  # fmt: skip
        made = (Raises, Huge, lambda: Ring(self.chance, self.core), MemoryRing, lambda: self.core)
        if self.chance.random() < 0.3:
            return self.chance.choice(made)()
        return self.chance.choice(plain)

    def once(self) -> None:
        """One odd call, one odd attribute, or one more object."""
        kind = self.chance.random()
        if kind < 0.1:
            self._make()
        if kind < 0.01:  # an odd attribute may have switched it off
            self.core = self.objects[0] = self._core()
            gc.collect()
        target = self.chance.choice((self.core, *self.objects))
        name = self.chance.choice(self.names[type(target).__mro__[-2]] if kind < 0.9 else dir(target))
        if name in LEFT_OUT:
            return
        given = [self.value() for _ in range(self.chance.choice((0, 0, 1, 1, 1, 2, 3, 7)))]
        if kind < 0.25:
            setattr(target, name, self.chance.choice((*EDGES, self.value())))
        elif kind < 0.28:
            delattr(target, name)
        else:
            found = getattr(target, name)
            if callable(found):
                found(*given, **({"samples": self.value()} if kind > 0.95 else {}))

    def _make(self) -> None:
        kinds = (self.module.Marks, self.module.Phase, self.module.Batches, self.module.Loop)
        right = {
            "Marks": (self.core,), "Phase": (self.core, 2), "Loop": (self.core, lambda: True),
            "Batches": (self.core, lambda: iter([[1], [2]]), True),
        }  # fmt: skip
        kind = self.chance.choice(kinds)
        given = right[kind.__name__] if self.chance.random() < 0.7 else (self.value(), self.value())
        self.objects.append(kind(*given))
        if len(self.objects) > 30:
            del self.objects[self.chance.randrange(1, 30)]


EDGES = (-(2**31), -5, -1, 0, 1, 15, 16, 63, 64, 65, 255, 2**31 - 1, 2**63 - 1)
LEFT_OUT = {
    "__class__",
    "__dict__",
    "__init_subclass__",
    "__subclasshook__",
    "__new__",
    "__reduce_ex__",
    "__weakref__",
}


def main() -> None:
    path, calls, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    spec = importlib.util.spec_from_file_location("native", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    odd, raised = Odd(module, seed), 0
    sys.setrecursionlimit(200)
    for _ in range(calls):
        try:
            odd.once()
        except BaseException:  # noqa: BLE001 — any exception is an answer
            raised += 1
    print(f"{calls} calls, {raised} of them answered with an exception")


if __name__ == "__main__":
    main()
