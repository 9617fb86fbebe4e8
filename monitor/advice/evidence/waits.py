"""Why the host waits for the device on a line: it reads a value, or needs the size of what it selects."""

from __future__ import annotations

import ast

READS = frozenset(("item", "tolist", "cpu", "numpy", "float", "int", "bool", "print", "format"))
"""Functions that bring a value to the host."""
SELECTS = frozenset(("nonzero", "masked_select", "unique", "argwhere", "unique_consecutive"))
"""Functions whose result has a size that only the device knows."""


def selects(code: str) -> bool:
    """Whether the line picks elements by a mask, or by a function of this kind, and reads no value."""
    try:
        nodes = list(ast.walk(ast.parse(code.rstrip(":"))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    called = {_name(node.func) for node in nodes if isinstance(node, ast.Call)}
    masks = any(isinstance(node, ast.Subscript) and _may_be_mask(node.slice) for node in nodes)
    return not called & READS and (masks or bool(called & SELECTS))


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _may_be_mask(index: ast.expr) -> bool:
    """A tensor held in a variable or made by a comparison; not a number, a slice or a key."""
    if isinstance(index, ast.Tuple):
        return any(map(_may_be_mask, index.elts))
    return isinstance(index, ast.Name | ast.Attribute | ast.Compare | ast.Call | ast.UnaryOp | ast.BoolOp)
