"""Digests of a script's functions: they change with the code, not with a comment."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from sdk.probe._source import digests, source_config

SCRIPT = """
import os

class Net:
    def forward(self, x):
        return x * 2

def main():
    def step(x):
        return Net().forward(x)
    return step(1)

main()
"""


def of(text: str) -> dict[str, str]:
    return digests(compile(text, "train.py", "exec"))


def test_every_function_has_a_digest() -> None:
    assert set(of(SCRIPT)) == {"<module>", "Net.forward", "main", "main.step"}


def test_comments_and_line_numbers_are_no_change() -> None:
    assert of(SCRIPT) == of("# told\n\n" + SCRIPT.replace("return step(1)", "return step(1)  # once"))


def test_a_changed_function_differs_with_those_it_is_in_and_no_others() -> None:
    before, after = (
        of(SCRIPT),
        of(SCRIPT.replace("forward(x)\n    return step", "forward(x + 1)\n    return step")),
    )
    assert {name for name in before if before[name] != after[name]} == {"main", "main.step"}
    moved = of(SCRIPT.replace("\nmain()", "\nfor _ in range(3): main()"))
    assert {name for name in before if before[name] != moved[name]} == {"<module>"}


def test_a_script_that_is_being_edited_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert source_config() is None
    path = tmp_path / "train.py"
    main.__file__ = str(path)
    path.write_text("def half(")
    assert source_config() is None
    path.write_text(SCRIPT)
    assert source_config() == {"functions": of(SCRIPT)}
