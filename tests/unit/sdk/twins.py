"""Both cores side by side: the C one built with a clock the test sets, and stand-ins for what they call."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from sdk import ring
from sdk.core import plain, plain_marks
from sdk.core.phases import DATA, FORWARD
from sdk.writer import MemoryRing, Slots
from tests.conftest import require_program

SOURCES = sorted(map(str, Path(plain.__file__).parent.glob("*.c")))


def build(folder: Path) -> ModuleType:
    compiler = require_program("cc")
    if not sys.platform.startswith("linux"):
        pytest.skip("the C core is for Linux")
    target = folder / f"native{sysconfig.get_config_var('EXT_SUFFIX')}"
    include = f"-I{sysconfig.get_paths()['include']}"
    flags = ["-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]
    flags += ["-Wno-missing-field-initializers", "-Wno-cast-function-type", "-DTEST_CLOCK"]
    flags += ["-fsanitize=signed-integer-overflow", "-fsanitize-undefined-trap-on-error"]
    subprocess.run([compiler, *flags, include, *SOURCES, "-o", str(target)], check=True)
    spec = importlib.util.spec_from_file_location("native", target)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Time:
    """The clock of both cores."""

    def __init__(self, native: ModuleType) -> None:
        self._set = native.set_clock
        self.set(10**9)

    def set(self, now: int) -> None:
        self.now = now
        self._set(now)

    def pass_by(self, ns: int) -> None:
        self.set(self.now + ns)


class Asked:
    """Records what a core calls. Stands in for `Recorder`."""

    calls: list[tuple[str, Any]]
    slots: Slots
    raises: BaseException | None

    def periodic(self, now: int) -> None:
        self.calls.append(("periodic", self.steps))  # type: ignore[attr-defined]
        self.next_call = self.steps + 3  # type: ignore[attr-defined]
        self.next_second = now + 10**6
        if self.raises is not None:
            raise self.raises

    def before_commit(self, duration: int) -> None:
        self.calls.append(("before_commit", duration))
        self.check_record = self.steps < 2  # type: ignore[attr-defined]

    def ring_full(self, _: int) -> None:
        self.calls.append(("ring_full", self.steps))  # type: ignore[attr-defined]

    def failed(self, error: Exception) -> None:
        self.calls.append(("failed", error is self.raises))

    def new_lap(self, name: Any) -> None:
        self.calls.append(("new_lap", name))

    def step_details(self, loss: Any = None, **more: Any) -> None:
        self.calls.append(
            ("step_details", (loss, {name: said for name, said in more.items() if said is not None}))
        )
        self.set_step_values(more.get("samples"), more.get("tokens"), loss)  # type: ignore[attr-defined]

    def device_mark(self, word: int) -> None:
        self.calls.append(("device_mark", word % 2**64))

    def measure_batch(self, batch: Any) -> None:
        self.calls.append(("measure_batch", len(batch)))
        self.scratch[ring.W_SAMPLES] += 1000  # type: ignore[attr-defined]


def make(module: Any) -> Any:
    class Probe(Asked, module.Core):  # type: ignore[misc, name-defined]
        pass

    core = Probe()
    core.calls, core.slots, core.raises = [], MemoryRing(), None
    core.use(core.slots)
    for name, phase in (("data", DATA), ("forward", FORWARD), ("own", 12)):
        core.name_phase(name, phase)
    return core


class Pair:
    """Both cores, driven together."""

    def __init__(self, native: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = Time(native)
        monkeypatch.setattr(plain, "clock", lambda: self.time.now)
        self.c, self.python = make(native), make(plain)
        marks = {name: getattr(plain_marks, name) for name in ("Marks", "Phase", "Batches", "Loop")}
        self.modules: tuple[Any, Any] = native, SimpleNamespace(**marks)

    def both(self, what: str, *args: Any, **kwargs: Any) -> Any:
        mine, other = (getattr(core, what)(*args, **kwargs) for core in (self.c, self.python))
        assert mine == other
        return mine

    def same(self) -> None:
        assert records(self.c) == records(self.python)
        mine = [call for call in self.c.calls if call[0] != "ring_full"]  # in Python the ring itself knows
        assert mine == self.python.calls
        for name in (
            "steps",
            "done",
            "current",
            "phase_began",
            "work_ended",
            "requested_at",
            "record_open",
            "step_mode",
            "depth",
            "phase",
        ):
            assert getattr(self.c, name) == getattr(self.python, name), name
        assert words(self.c.scratch) == words(self.python.scratch)


def words(record: memoryview) -> list[int]:
    """A record without its overhead, which differs in C."""
    return [word for at, word in enumerate(record.tolist()) if at not in (ring.W_OVERHEAD, 0, ring.W_COMMIT)]


def records(core: Any) -> list[list[int]]:
    slots = core.slots
    count = min(slots.head, slots.slots)
    first = ring.DATA_AT // 8
    found = [
        slots.words[first + at * ring.SLOT_WORDS : first + (at + 1) * ring.SLOT_WORDS] for at in range(count)
    ]
    header = [slots.words[at] for at in (ring.H_HEAD, ring.H_LIVE, ring.H_CLOSED)]
    return [header, *([one[0], one[ring.W_COMMIT], *words(one)] for one in found)]
