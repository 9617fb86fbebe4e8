"""Moving a call whose result is the same in every step before the loop, if that changes nothing."""

from __future__ import annotations

import ast
from typing import Any

from .effects import Effect
from .flow import Flow
from .source import Function, Loop

KEPT = "kept"
"""The name for the result; if the script already uses it, nothing is moved."""


def hoist(flow: Flow, effect: Effect, constant: set[str]) -> dict[str, Any] | None:
    """How to call a function once before the innermost loop. `constant`: functions that returned the same in
    every step. None if an argument changes in the loop, or the result is modified there."""
    loops = effect.source.loops(effect.node)
    if not loops or not effect.source.begins_line(effect.node) or not effect.source.begins_line(loops[0]):
        return None
    call = _outermost_call(flow, effect, constant)
    lines = effect.source.text_between(effect.node.lineno, effect.node.end_lineno or effect.node.lineno)
    text = ast.get_source_segment("\n".join(effect.source.text_between(1, 10**6)), call) if call else None
    taken = any(isinstance(one, ast.Name) and one.id == KEPT for one in ast.walk(effect.source.tree))
    if call is None or text is None or taken or len(lines) != 1 or lines[0].count(text) != 1:
        return None
    if not _stays(flow, effect, call, loops[0]):
        return None
    head = effect.source.text_between(loops[0].lineno, loops[0].lineno)[0]
    return {
        "line": effect.node.lineno,
        "code": lines[0],
        "call": text,
        "loop_line": loops[0].lineno,
        "loop": head,
    }


def _outermost_call(flow: Flow, effect: Effect, constant: set[str]) -> ast.Call | None:
    names = flow.reader.names(effect.source)
    for one in ast.walk(effect.node):
        if isinstance(one, ast.Call):
            target = names.resolve(one.func, effect.scope).node
            if isinstance(target, Function) and target.name in constant:
                return one
    return None


def _stays(flow: Flow, effect: Effect, call: ast.Call, loop: Loop) -> bool:
    """Whether nothing in the loop binds or changes what the call reads, nor changes its result."""
    reads, _ = flow.reader.argument(effect, call)
    inside = set(ast.walk(loop))
    others = [
        one
        for one in flow.reader.effects(effect.source, effect.scope)
        if one.node in inside or one.node is loop
    ]
    bound = set().union(*(one.binds for one in others))
    changed = flow.reader.objects(set().union(*(one.changes | one.maybe for one in others)))
    return not reads & (bound | changed) and not effect.binds & changed
