"""What the source says about a line that its time does not: without gradients, or the same in every step."""

from __future__ import annotations

import importlib
import re
from typing import Any

from .place import around, facts, tree
from .stacks import Frame

_NO_GRAD = re.compile(r"no_grad|inference_mode")
_BUILDERS = re.compile(
    "arange|cos|diag|exp|eye|full|hanning|linspace|log|logspace|meshgrid|ones|outer|pow|sin|sqrt|tensor|zeros"
    "|tri[lu](_indices)?"
)
_SIZES = frozenset(("size", "shape", "ndim", "dtype", "device", "numel", "dim"))


def without_gradients(frame: Frame) -> bool:
    """The line stands in a `with torch.no_grad()` block, or in a function decorated with it."""
    key = (frame.file, "no_grad")
    if key not in facts:
        facts[key] = _no_grad_ranges(tree(frame.file))
    return any(first <= frame.line <= last for first, last in facts[key])


def _no_grad_ranges(whole: Any) -> list[tuple[int, int]]:
    """(first, last) lines of everything in a file that runs without gradients."""
    ast = importlib.import_module("ast")
    found = []
    for node in ast.walk(whole) if whole is not None else ():
        marks = [item.context_expr for item in getattr(node, "items", [])]
        marks += getattr(node, "decorator_list", [])
        if any(_NO_GRAD.search(ast.unparse(mark)) for mark in marks):
            found.append((node.lineno, node.end_lineno or node.lineno))
    return found


def fixed_line(frame: Frame) -> bool:
    """The line stands in a `forward` and uses nothing of its input but sizes: the same in every step."""
    function = next(
        (node for node in reversed(around(frame)) if getattr(node, "name", "") == "forward"), None
    )
    if function is None:
        return False
    arguments = function.args
    moving = {one.arg for one in (*arguments.args, *arguments.kwonlyargs)} - {"self"}
    fixed: set[str] = set()
    for statement in function.body:
        found = _assigned(statement)
        if found is None:
            continue
        names, value = found
        still = _still(value, moving)
        made = still and (_builds(value) or bool(_names(value) & fixed))
        if made and statement.lineno <= frame.line <= (statement.end_lineno or statement.lineno):
            return True
        if made or not still:
            (fixed if made else moving).update(names)
    return False


def _assigned(statement: Any) -> tuple[set[str], Any] | None:
    """(names a statement assigns, from what); None when it is no assignment."""
    kind = type(statement).__name__
    if kind == "Assign":
        targets = statement.targets
    elif kind in ("AugAssign", "AnnAssign") and statement.value is not None:
        targets = [statement.target]
    else:
        return None
    return set().union(*(_names(target) for target in targets)), statement.value


def _names(node: Any) -> set[str]:
    ast = importlib.import_module("ast")
    return {one.id for one in ast.walk(node) if type(one).__name__ == "Name"}


def _builds(value: Any) -> bool:
    """Calls a function that makes or maps an array."""
    ast = importlib.import_module("ast")
    calls = [node.func for node in ast.walk(value) if type(node).__name__ == "Call"]
    return any(_BUILDERS.fullmatch(getattr(call, "attr", getattr(call, "id", ""))) for call in calls)


def _still(node: Any, moving: set[str]) -> bool:
    """Nothing in it moves from step to step: no input but its sizes, no module, nothing drawn."""
    kind = type(node).__name__
    if kind == "Attribute" and node.attr in _SIZES:
        return True
    if kind == "Name":
        return node.id not in moving
    if kind == "Call" and _called_on_self(node):
        return False
    if kind in ("Attribute", "Name") and "rand" in getattr(node, "attr", ""):
        return False
    ast = importlib.import_module("ast")
    return all(_still(child, moving) for child in ast.iter_child_nodes(node))


def _called_on_self(call: Any) -> bool:
    function = call.func
    while type(function).__name__ == "Attribute":
        function = function.value
    return type(function).__name__ == "Name" and function.id == "self"
