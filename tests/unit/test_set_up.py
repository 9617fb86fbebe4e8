"""What the set-up says while pip works."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def install() -> ModuleType:
    path = Path(__file__).parents[2] / ".ci" / "install.py"
    spec = importlib.util.spec_from_file_location("install", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (
            "Collecting torch==2.13.0 (from -c constraints.txt)",
            "looking up torch==2.13.0",
        ),
        (
            "  Downloading numpy-2.1-cp311-cp311-linux.whl (16 MB)",
            "downloading numpy-2.1 (16 MB)",
        ),
        ("Installing collected packages: a, b, c", "installing"),
        ("Requirement already satisfied: pip", ""),
        ("WARNING: something", ""),
    ],
)
def test_lines_of_pip_in_plain_words(install: ModuleType, said: str, meant: str) -> None:
    assert install.meaning(said) == meant
