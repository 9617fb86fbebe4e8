"""The calls a remedy would change: where the source sets the loader, the optimizer and torch's switches."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from . import apis
from .files import short_path
from .reader import Reader
from .source import Loop, Scope, Source

_CALLS = {
    "loader": ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"),
    "clip": ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad.clip_grad_norm_"),
    "compile": ("torch.compile",),
    "threads": ("torch.set_num_threads",),
    "anomaly": ("torch.autograd.set_detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly"),
    "deterministic": ("torch.use_deterministic_algorithms",),
}
_MOST_LINES = 8
"""Chosen: a longer call is described, not shown."""


def sites(reader: Reader, sources: Iterable[Source], loops: Iterable[tuple[Source, Loop]]) -> dict[str, Any]:
    """Name → where that call is, for calls made in only one place; for loaders, the one that feeds the
    steps."""
    found: dict[str, list[tuple[Source, ast.Call]]] = {}
    for source in sources:
        for call in (one for one in source.parents if isinstance(one, ast.Call)):
            name = _name(reader.names(source).resolve(call.func, source.scope(call)).api)
            if name:
                found.setdefault(name, []).append((source, call))
    loaders = found.get("loader", [])
    if len(loaders) > 1:
        found["loader"] = [one for one in loaders if any(_feeds(reader, loop, one) for loop in loops)]
    single = {name: places[0] for name, places in found.items() if len(places) == 1}
    described = {name: site(*place) for name, place in single.items()}
    return {name: value for name, value in described.items() if value is not None}


def _name(api: str) -> str:
    if apis.makes_optimizer(api):
        return "optimizer"
    return next((name for name, known in _CALLS.items() if api in known), "")


def _feeds(reader: Reader, loop: tuple[Source, Loop], loader: tuple[Source, ast.Call]) -> bool:
    """Whether the loop iterates over what this call creates."""
    (source, node), (where, call) = loop, loader
    if not isinstance(node, ast.For | ast.AsyncFor) or source is not where:
        return False
    names, scope = reader.names(source), source.scope(node)
    for one in ast.walk(node.iter):
        values = _values(names.bindings, source, scope, one.id) if isinstance(one, ast.Name) else [one]
        if any(value is call for value in values):
            return True
    return False


def _values(bindings: Any, source: Source, scope: Scope, name: str) -> list[ast.expr | None]:
    for place in (scope, *(one for one in source.outward(scope) if isinstance(one, Scope))):
        if name in bindings(place):
            found: list[ast.expr | None] = bindings(place)[name]
            return found
    return []


def site(source: Source, call: ast.Call) -> dict[str, Any] | None:
    """A call with its lines, the end of its last argument, the position of each keyword's value and its
    file's name for torch; None if it takes keywords from a mapping or is not plain text."""
    first, last = call.lineno, call.end_lineno or call.lineno
    lines = source.text_between(first, last)
    plain = len(lines) <= _MOST_LINES and all(one.isascii() and "\t" not in one for one in lines)
    if not plain or any(one.arg is None for one in call.keywords):
        return None
    arguments = [*call.args, *(one.value for one in call.keywords)]
    end: ast.expr = max(arguments, key=lambda one: (one.end_lineno, one.end_col_offset), default=call.func)
    column = (end.end_col_offset or 0) + (0 if arguments else 1)
    return {
        "file": short_path(source.file),
        "line": first,
        "lines": indented(lines),
        "end": [(end.end_lineno or first) - first, column - indent(lines[0])],
        "arguments": len(arguments),
        "keywords": {
            one.arg: _range(one.value, first, lines) for one in call.keywords if _on_one_line(one.value)
        },
        "positional": [_range(one, first, lines) for one in call.args if _on_one_line(one)],
        **({"torch": name} if (name := _torch(source)) else {}),
    }


def _on_one_line(node: ast.expr) -> bool:
    return node.lineno == node.end_lineno


def _range(node: ast.expr, first: int, lines: list[str]) -> list[int]:
    """[row, column, characters] of an expression within the lines of a call."""
    width = (node.end_col_offset or 0) - node.col_offset
    return [node.lineno - first, node.col_offset - indent(lines[0]), width]


def indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def indented(lines: list[str]) -> list[list[Any]]:
    """[indent relative to the first line, text] of each line: a reader of the meta may strip text."""
    return [[indent(one) - indent(lines[0]), one.strip()] for one in lines]


def top(source: Source) -> dict[str, Any] | None:
    """The line below a script's imports, and its name for torch; None if it does not import torch."""
    name = _torch(source)
    if name is None:
        return None
    last = _imports(source)[-1]
    return {
        "file": short_path(source.file),
        "line": (last.end_lineno or last.lineno) + 1,
        "torch": name,
    }


def _torch(source: Source) -> str | None:
    """A file's name for torch; None if it imports only parts of it."""
    names = [
        alias.asname or alias.name
        for one in _imports(source)
        if isinstance(one, ast.Import)
        for alias in one.names
        if alias.name == "torch"
    ]
    return names[0] if names else None


def _imports(source: Source) -> list[ast.Import | ast.ImportFrom]:
    return [one for one in source.tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
