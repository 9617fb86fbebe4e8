"""A process that reads the stand-in through the real pynvml, and the stand-in to steer it with."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from monitor.model.gpu import Gpu, Source
from tests.conftest import PATIENCE, require_program, wait_for
from tests.nvml.standin import StandIn


class Answer(msgspec.Struct):
    seconds: float
    source: Source | None = None
    gpus: tuple[Gpu, ...] = ()


class Reader:
    """The child; `read` is one tick."""

    def __init__(self, nvml: StandIn, **options: Any) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.nvml.reader", msgspec.json.encode(options).decode()],
            env={**os.environ, **nvml.environment()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read(self) -> Answer:
        return self._ask("read")

    def until(self, good: Callable[[Answer], object]) -> Answer:
        """Read 20 times a second until `good`; returns that answer."""

        def attempt() -> Answer | None:
            answer = self.read()
            return answer if good(answer) else None

        found = wait_for(attempt)
        assert found is not None
        return found

    def quickest(self, ticks: int = 5) -> float:
        """Seconds of the quickest of several ticks: other load on the machine cannot make it quicker."""
        return min(self.read().seconds for _ in range(ticks))

    def close(self) -> None:
        """Close the source. The process must then end by itself."""
        self._ask("close")
        assert self._child.wait(timeout=PATIENCE) == 0

    def kill(self) -> None:
        self._child.kill()
        self._child.communicate()

    def _ask(self, command: str) -> Answer:
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.write(command + "\n")
        self._child.stdin.flush()
        return msgspec.json.decode(self._child.stdout.readline(), type=Answer)


@pytest.fixture
def nvml() -> Iterator[StandIn]:
    require_program("cc")
    with StandIn(gpus=3) as standin:
        yield standin


@pytest.fixture
def open_reader(nvml: StandIn) -> Iterator[Callable[..., Reader]]:
    readers: list[Reader] = []

    def start(**options: Any) -> Reader:
        readers.append(Reader(nvml, **options))
        return readers[-1]

    yield start
    nvml.unhang()
    for reader in readers:
        reader.kill()
