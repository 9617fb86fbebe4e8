"""Waiting for a module: it is looked up, found by others, and finally imported."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from sdk.auto.import_hook import when_imported

NAME = "waited_for"


class Asker(importlib.abc.MetaPathFinder):
    """Like many tools: asks every other finder, including those that ask every other one."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        others = [finder for finder in sys.meta_path if finder is not self]
        found = (finder.find_spec(fullname, path, target) for finder in others)
        return next((spec for spec in found if spec), None)


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / f"{NAME}.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = list(sys.meta_path)
    yield
    sys.meta_path[:] = before
    sys.modules.pop(NAME, None)


def test_it_is_called_behind_the_import_and_once() -> None:
    seen: list[int] = []
    when_imported(NAME, lambda module: seen.append(module.value))
    importlib.reload(importlib.import_module(NAME))
    assert seen == [1]


def test_a_library_that_looks_whether_it_is_there_does_not_use_it_up() -> None:
    seen: list[str] = []
    when_imported(NAME, lambda module: seen.append(module.__name__))
    assert importlib.util.find_spec(NAME) and importlib.util.find_spec(NAME)
    assert seen == []
    importlib.import_module(NAME)
    assert seen == [NAME]


def test_all_that_wait_are_called_though_another_finder_asks_everybody() -> None:
    seen: list[int] = []
    when_imported(NAME, lambda _: seen.append(1))
    sys.meta_path.insert(0, Asker())
    when_imported(NAME, lambda _: seen.append(2))
    importlib.import_module(NAME)
    assert sorted(seen) == [1, 2]


def test_who_stops_waiting_is_not_called() -> None:
    seen: list[ModuleType] = []
    stop = when_imported(NAME, seen.append)
    importlib.util.find_spec(NAME)
    stop()
    importlib.import_module(NAME)
    assert seen == []


def test_the_finder_asked_is_one_however_many_modules_are_waited_for() -> None:
    before = len(sys.meta_path)
    stops = [when_imported(f"{NAME}_{number}", lambda _: None) for number in range(5)]
    assert len(sys.meta_path) == before + 1
    for stop in stops:
        stop()
    assert len(sys.meta_path) == before


def test_a_failing_function_does_not_run_again_and_others_still_do() -> None:
    seen: list[int] = []

    def fails(module: ModuleType) -> None:
        seen.append(1)
        raise OSError("no")

    when_imported(NAME, fails)
    with pytest.raises(OSError, match="no"):
        importlib.import_module(NAME)
    when_imported(NAME, lambda _: seen.append(2))
    importlib.import_module(NAME)
    assert seen == [1, 2]
