"""Whose code a file is: the user's, or a library's; and what a line of it belongs to."""

from __future__ import annotations

import importlib
import linecache
import os
import sys
import sysconfig
from typing import Any

from .stacks import Frame

_MOST_LINES = 20_000
_DEFINITIONS = ("ClassDef", "FunctionDef", "AsyncFunctionDef")

_HERE = os.path.dirname(os.path.abspath(__file__))
_LIBRARIES = tuple(
    os.path.join(path, "")
    for path in {
        sysconfig.get_paths()["stdlib"],
        sysconfig.get_paths()["platstdlib"],
        os.path.realpath(sysconfig.get_paths()["stdlib"]),
        _HERE,
    }
)
_known: dict[str, bool] = {}
_trees: dict[str, Any] = {}


def is_user_file(name: str) -> bool:
    """Not the standard library, not an installed package, not ours, not generated code."""
    answer = _known.get(name)
    if answer is None:
        answer = _known[name] = _is_user_file(name)
    return answer


def _is_user_file(name: str) -> bool:
    if name.startswith("<"):
        return name == "<stdin>"
    path = os.path.abspath(name)
    if f"{os.sep}site-packages{os.sep}" in path or f"{os.sep}dist-packages{os.sep}" in path:
        return False
    return not path.startswith(_LIBRARIES)


def short_path(name: str) -> str:
    """Relative to the working directory or the script's when it is below one of them."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    for base in (os.getcwd(), os.path.dirname(os.path.abspath(script)) if script else None):
        if base and name.startswith(os.path.join(base, "")):
            return os.path.relpath(name, base)
    return name


def qualified(place: Frame) -> str:
    """The function's name with the class or function around it, from the source where there is one."""
    names = [node.name for node in _around(place)]
    if place.name in names:
        names = names[: len(names) - names[::-1].index(place.name)]
        return ".".join(names)
    return ".".join([*names, place.name]) if names else place.name


def body(place: Frame) -> list[tuple[int, str]]:
    """(number, text) of the lines of the function around a place; of the whole file outside functions."""
    inside = [node for node in _around(place) if type(node).__name__ != "ClassDef"]
    lines = linecache.getlines(place.file) if is_user_file(place.file) else []
    first, last = (inside[-1].lineno, inside[-1].end_lineno) if inside else (1, len(lines))
    return [(at, lines[at - 1]) for at in range(first, min(last, len(lines), first + _MOST_LINES) + 1)]


def forget_source() -> None:
    """A syntax tree is large; who has asked all questions about a file gives it back."""
    _trees.clear()


def _around(place: Frame) -> list[Any]:
    """Classes and functions a line lies in, outermost first; none without source."""
    found: list[Any] = []
    node = _tree(place.file) if is_user_file(place.file) else None
    while node is not None:
        inner = None
        for child in _definitions(node):
            if child.lineno <= place.line <= (child.end_lineno or child.lineno):
                inner = child
        if inner is not None:
            found.append(inner)
        node = inner
    return found


def _tree(file: str) -> Any:
    """The syntax tree of a file, parsed once."""
    if file not in _trees:
        lines = linecache.getlines(file)
        ast = importlib.import_module("ast")
        try:
            _trees[file] = ast.parse("".join(lines)) if 0 < len(lines) <= _MOST_LINES else None
        except (SyntaxError, ValueError, RecursionError):
            _trees[file] = None
    return _trees[file]


def _definitions(node: Any) -> list[Any]:
    """Definitions directly inside a node, also below its if, with and for."""
    found, rest = [], list(getattr(node, "body", []))
    while rest:
        one = rest.pop()
        if type(one).__name__ in _DEFINITIONS:
            found.append(one)
        else:
            for part in ("body", "orelse", "finalbody", "handlers"):
                rest += getattr(one, part, None) or []
    return found
