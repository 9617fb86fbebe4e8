"""Every number in the rules has a name: in the policy, or as a constant that says where it comes from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from itertools import zip_longest
from pathlib import Path

import pytest

from monitor.model.policy import Policy

ROOT = Path(__file__).parents[3]
ADVICE = ROOT / "monitor" / "advice"
PLAIN = (0, 1, 2, 100)
"""Numbers that need no name: nothing, all, a pair or a half, a percentage."""


def named(tree: ast.Module) -> Iterator[ast.AST]:
    """Parts of a file in which a number has a name or is an index: constants, decorators, slices, formats."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            yield node.slice
        elif isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            yield node.format_spec
        elif isinstance(node, ast.FunctionDef):
            yield from (keyword for call in node.decorator_list for keyword in keywords(call))
    yield from (node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign))


def keywords(call: ast.expr) -> list[ast.keyword]:
    return call.keywords if isinstance(call, ast.Call) else []


def bare_numbers(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    allowed = {id(inner) for part in named(tree) for inner in ast.walk(part)}
    return [
        f"{path.name}:{node.lineno}: {node.value!r}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and type(node.value) in (int, float)
        if node.value not in PLAIN and id(node) not in allowed
    ]


@pytest.mark.parametrize("path", sorted(ADVICE.rglob("*.py")), ids=lambda path: path.stem)
def test_no_number_without_a_name(path: Path) -> None:
    assert bare_numbers(path) == [], "a threshold belongs to the policy, a price or a bound to a constant"


@pytest.mark.parametrize("path", sorted(ADVICE.glob("rules/*.py")), ids=lambda path: path.stem)
def test_every_constant_of_a_rule_is_explained(path: Path) -> None:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    unexplained = [
        node.lineno
        for node, following in zip_longest(body, body[1:])
        if isinstance(node, ast.Assign)
        if has_number(node.value) and not explains(following) and not isinstance(following, ast.Assign)
    ]
    assert unexplained == []


def has_number(value: ast.expr) -> bool:
    return any(isinstance(node, ast.Constant) and type(node.value) is float for node in ast.walk(value))


def explains(node: ast.stmt | None) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def test_every_threshold_is_read_somewhere() -> None:
    files = [*(ROOT / "monitor").rglob("*.py"), *(ROOT / "grafana").rglob("*.py")]
    own = ROOT / "monitor" / "model" / "policy.py"
    read = {
        node.attr
        for path in files
        if path != own
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    }
    assert sorted({field.name for field in fields(Policy)} - read) == []
