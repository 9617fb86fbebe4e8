"""What a name in the user's code refers to."""

from __future__ import annotations

import ast
import importlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from sdk.structure.apis import job
from sdk.structure.reader import Reader
from sdk.structure.source import Function, Source, forget, read

OWN = """\
class Cost:
    def of(self, x):
        return x

cost = Cost()
"""
CALLS = """\
import evaluate
import sklearn.metrics

evaluate.cost.of(1)
sklearn.metrics.f1_score
"""


def test_a_file_of_the_user_is_no_library_whatever_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIVEN an own file named like a library of metrics WHEN what it holds is called THEN it is unknown."""
    (tmp_path / "evaluate.py").write_text(OWN)
    (tmp_path / "train.py").write_text(CALLS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "evaluate", raising=False)
    importlib.import_module("evaluate")
    forget()
    source = read(str(tmp_path / "train.py"))
    assert source is not None
    own, library = (node.value for node in source.tree.body[2:] if isinstance(node, ast.Expr | ast.Assign))
    apis = [
        Reader().names(source).resolve(getattr(one, "func", one), source.tree).api for one in (own, library)
    ]
    assert not job(apis[0]) and job(apis[1]) == "metrics"


FILES = {
    "__init__.py": "from .base import Base as Trainer\n",
    "tools.py": "import logging\nimport torch\nlogger = logging.getLogger()\nkeep = torch.save\n",
    "base.py": """\
import torch

class Base:
    def __init__(self, board):
        self.board = board

    def show(self, value):
        self.board.log(value)

class Guarded(torch.optim.AdamW):
    def step(self):
        super().step()
""",
    "loop.py": """\
import wandb
from . import Trainer
from .tools import keep, logger
from ..pets import tools

class Mine(Trainer):
    def fit(self):
        logger.info("")
        keep({})
        tools.logger.info("")
        self.board.log({})
        self.show({})
        super().show({})

Mine(wandb.init())
""",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Source]]:
    """A package in four files, imported but for the last, which only has to be read."""
    folder = tmp_path / "zoo" / "pets"
    folder.mkdir(parents=True)
    (tmp_path / "zoo" / "__init__.py").write_text("")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=lambda: None))
    forget()
    for name in ("tools", "base", "loop"):
        importlib.import_module(f"zoo.pets.{name}")
    found = {name: read(str(folder / name)) for name in FILES}
    yield {name: source for name, source in found.items() if source is not None}
    for name in [one for one in sys.modules if one.partition(".")[0] == "zoo"]:
        del sys.modules[name]
    forget()


def called_in(source: Source, function: str) -> list[str]:
    """What the calls in a function refer to: a library's name, or the user's own."""
    names, scope = Reader().names(source), source.definitions[function]
    assert isinstance(scope, Function)
    calls = [one.func for one in ast.walk(scope) if isinstance(one, ast.Call)]
    found = [names.resolve(one, scope) for one in calls if not isinstance(one, ast.Name) or one.id != "super"]
    return [one.api or getattr(one.node, "name", "") for one in found]


def test_names_are_followed_from_file_to_file(package: dict[str, Source]) -> None:
    """Relative imports, a class that its package exports, what it inherits, what is passed to it."""
    assert called_in(package["loop.py"], "Mine.fit") == [
        "logging.getLogger().info",
        "torch.save",
        "logging.getLogger().info",
        "wandb.init().log",
        "show",
        "show",
    ]


def test_a_method_of_a_librarys_class_is_that_librarys(package: dict[str, Source]) -> None:
    assert called_in(package["base.py"], "Guarded.step") == ["torch.optim.AdamW.step"]


def test_a_class_and_its_base_have_the_same_attributes(package: dict[str, Source]) -> None:
    reader = Reader()
    shown = package["base.py"].definitions["Base.show"]
    fit = package["loop.py"].definitions["Mine.fit"]
    assert isinstance(shown, Function) and isinstance(fit, Function)
    here = reader.effects(package["base.py"], shown)[0].reads
    there = set().union(*(one.reads for one in reader.effects(package["loop.py"], fit)))
    assert any("self|board" in one and one in there for one in here)
