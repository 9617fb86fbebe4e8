"""A machine without NVIDIA's library, and one where it comes later."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from monitor.gpu import awaited, source
from monitor.gpu.awaited import FIRST_PAUSE, LONGEST_PAUSE, NOT_FOUND, AwaitedSource
from monitor.gpu.source import GpuReadings, GpuSource
from monitor.model.clock import Moment
from monitor.model.gpu import Source
from monitor.model.snapshot import Snapshot


class Real:
    """The source once there is a library."""

    closed = False

    def read(self, now: Moment, previous: Snapshot | None) -> GpuReadings:
        return GpuReadings(Source(kind="nvml"))

    def close(self) -> None:
        self.closed = True


class Machine:
    """A clock, and a library that may appear."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time, self.looks, self.library, self.real = 100.0, 0, False, Real()
        monkeypatch.setattr(time, "monotonic", lambda: self.time)
        monkeypatch.setattr(awaited, "has_library", self.look)
        monkeypatch.setattr(source, "has_library", self.look)

    def look(self) -> bool:
        self.looks += 1
        return self.library

    def make(self) -> GpuSource:
        return self.real


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def read(one: GpuSource) -> Source:
    return one.read(Moment.now(), None).source


def test_without_the_library_there_is_no_gpu_and_the_reason_is_said(machine: Machine) -> None:
    opened = source.open_source("auto")
    assert isinstance(opened, AwaitedSource)
    assert read(opened) == Source(kind="none", detail=NOT_FOUND)
    opened.close()


def test_the_library_may_come_later(machine: Machine) -> None:
    opened = AwaitedSource(machine.make)
    machine.library = True
    assert read(opened).kind == "none"  # it is not looked for at every reading
    machine.time += FIRST_PAUSE
    assert read(opened).kind == "nvml"
    opened.close()
    assert machine.real.closed


def test_it_is_looked_for_less_and_less_often(machine: Machine) -> None:
    opened = AwaitedSource(machine.make)
    for _ in range(600):
        machine.time += 1.0
        read(opened)
    assert 600 / LONGEST_PAUSE <= machine.looks <= 600 / LONGEST_PAUSE + 5


def test_nothing_that_asks_the_library_is_imported_without_it() -> None:
    code = (
        "import sys\nfrom monitor.gpu import source\nsource.has_library = lambda: False\n"
        "source.open_source('auto')\nprint('pynvml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
