"""What libraries with loops of their own call, by the names of their functions: saves, evaluations, logs."""

from __future__ import annotations

import sys
import time
import types
from collections.abc import Iterator
from typing import Any

import pytest

from sdk.auto.framework import framework_of
from sdk.auto.side_calls import LATER
from sdk.core.phases import CHECKPOINT, LOG, VALIDATE
from tests.unit.sdk.loops import PAUSE, Net, Recording, batches

NAMES = {CHECKPOINT: "checkpoint", LOG: "log", VALIDATE: "validate"}
LIBRARIES = ("d3rlpy", "fastai", "transformers", "trl", "ultralytics")
ROWS = [row for row in LATER if row[0].partition(".")[0] in LIBRARIES]


@pytest.fixture(params=ROWS, ids=lambda row: f"{row[0]}-{row[2][0]}")
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """One row, its module in place before anything is hooked, and an object of its class."""
    module, owner, names, phase = request.param
    made = types.ModuleType(module)
    functions = {name: lambda *_: time.sleep(PAUSE) for name in names}
    setattr(made, owner, type(owner, (), functions))
    monkeypatch.setitem(sys.modules, module, made)
    yield getattr(made, owner)(), names, NAMES[phase]


def test_a_librarys_own_call_is_its_phase(library: Any, auto: Recording) -> None:
    made, names, phase = library

    def loop() -> None:
        net = Net()
        for x, y in batches():
            net.step(x, y)
            for name in names:
                getattr(made, name)()

    assert auto(loop).records[5].phases[phase] >= PAUSE * len(names)


@pytest.mark.parametrize("package", ["d3rlpy", "monai", "pytorch_tabnet", "sbi"])
def test_the_package_that_runs_the_loop(package: str) -> None:
    names: dict[str, Any] = {"__name__": f"{package}.loop", "ask": lambda: framework_of(sys._getframe(1))}
    exec("def fit(): return ask()", names)
    assert names["fit"]() == package
