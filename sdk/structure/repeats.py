"""Backward passes that go through one graph again and again, where one pass for the sum would do."""

from __future__ import annotations

import ast

from .source import Source, blocks, read

_LOOPS = ast.For | ast.While
_OTHERWISE = ("create_graph", "inputs")
"""Arguments with which a pass is more than adding to the gradients."""


def repeated_passes(file: str, line: int) -> int:
    """How many backward passes through one graph stand together where a line makes one of them, with nothing
    in between that could read or clear the gradients. 0: none; 1: a loop that does nothing else."""
    source = read(file)
    node = source.statement_at(line) if source else None
    if source is None or node is None:
        return 0
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.ListComp):
        call = _pass(node.value.elt)
        return int(call is not None and _keeps(call))
    parent, block = source.parents.get(node), _block(source, node)
    run = [call for one in _together(block, node) if (call := _statement(one)) is not None]
    if isinstance(parent, _LOOPS) and len(run) == len(block) and any(map(_keeps, run)):
        return 1
    return len(run) if len(run) > 1 and all(map(_keeps, run[:-1])) else 0


def _block(source: Source, node: ast.stmt) -> list[ast.stmt]:
    parent = source.parents.get(node)
    return next((one for one in blocks(parent) if node in one), []) if parent is not None else []


def _together(block: list[ast.stmt], node: ast.stmt) -> list[ast.stmt]:
    """The backward passes around a statement, one after the other."""
    found: list[ast.stmt] = []
    for one in block:
        if _statement(one) is not None:
            found.append(one)
        elif node in found:
            break
        else:
            found.clear()
    return found if node in found else []


def _statement(node: ast.stmt) -> ast.Call | None:
    return _pass(node.value) if isinstance(node, ast.Expr) else None


def _pass(node: ast.expr) -> ast.Call | None:
    """`loss.backward(…)` that only adds to the gradients."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    plain = node.func.attr == "backward" and all(one.arg not in _OTHERWISE for one in node.keywords)
    return node if plain else None


def _keeps(call: ast.Call) -> bool:
    """Whether the graph is kept for another pass, always or sometimes."""
    kept = next((one.value for one in call.keywords if one.arg == "retain_graph"), None)
    return kept is not None and not (isinstance(kept, ast.Constant) and not kept.value)
