"""Whose code a file is: the user's, or a library's; and what a line of it belongs to."""

from __future__ import annotations

import importlib
import linecache
import os
import sys
import sysconfig
from types import SimpleNamespace
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
facts: dict[tuple[str, str], Any] = {}
"""(file, question) → what was found out about a file, for as long as its tree is kept."""
_NOTHING = SimpleNamespace(body=[])


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
    names = [node.name for node in around(place)]
    if place.name in names:
        names = names[: len(names) - names[::-1].index(place.name)]
        return ".".join(names)
    return ".".join([*names, place.name]) if names else place.name


def body(place: Frame) -> list[tuple[int, str]]:
    """(number, text) of the lines of the function around a place; of the whole file outside functions."""
    inside = [node for node in around(place) if type(node).__name__ != "ClassDef"]
    lines = linecache.getlines(place.file) if is_user_file(place.file) else []
    first, last = (inside[-1].lineno, inside[-1].end_lineno) if inside else (1, len(lines))
    return [(at, lines[at - 1]) for at in range(first, min(last, len(lines), first + _MOST_LINES) + 1)]


def per_epoch(*frames: Frame) -> list[tuple[str, int, str]]:
    """(file, line, text) of what is done once for each round of the loop around the step loop. `frames` is
    the way to a line of the step, innermost first: the epochs' loop may stand in a caller."""
    loops = [(frame, loop) for frame in frames for loop in _loops(frame)]
    if len(loops) < 2:
        return []
    (_, steps), (frame, epochs) = loops[0], loops[1]
    beside = [one for one in epochs.body if not _spans(one, frame.line)]
    if type(steps).__name__ == "For" and type(steps.iter).__name__ == "Call" and loops[0][0] is frame:
        beside.append(steps)
    lines = linecache.getlines(frame.file)
    return [(frame.file, one.lineno, lines[one.lineno - 1].strip()) for one in beside]


def _loops(place: Frame) -> list[Any]:
    """The loops a line lies in within its function, innermost first."""
    inside = [node for node in around(place) if type(node).__name__ != "ClassDef"]
    rest = list((inside[-1] if inside else tree(place.file) or _NOTHING).body)
    found: list[Any] = []
    while rest:
        node = rest.pop()
        if not _spans(node, place.line) or type(node).__name__ in _DEFINITIONS:
            continue
        if type(node).__name__ in ("For", "While"):
            found.insert(0, node)
        for part in ("body", "orelse", "finalbody", "handlers"):
            rest += getattr(node, part, None) or []
    return found


def _spans(node: Any, line: int) -> bool:
    return bool(node.lineno <= line <= (node.end_lineno or node.lineno))


def forget_source() -> None:
    """A syntax tree is large; who has asked all questions about a file gives it back."""
    _trees.clear()
    facts.clear()


def around(place: Frame) -> list[Any]:
    """Classes and functions a line lies in, outermost first; none without source."""
    found: list[Any] = []
    node = tree(place.file) if is_user_file(place.file) else None
    while node is not None:
        inner = None
        for child in _definitions(node):
            if child.lineno <= place.line <= (child.end_lineno or child.lineno):
                inner = child
        if inner is not None:
            found.append(inner)
        node = inner
    return found


def tree(file: str) -> Any:
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
