"""What a name in the user's code refers to."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

import pytest

from sdk.structure.apis import job
from sdk.structure.names import Names
from sdk.structure.source import forget, read

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
    apis = [Names(source).resolve(getattr(one, "func", one), source.tree).api for one in (own, library)]
    assert not job(apis[0]) and job(apis[1]) == "metrics"
