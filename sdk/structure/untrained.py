"""Work beside the steps that switches gradients off: is it something to train on, or a look at how good the
model is? Read from the source, for what comes too seldom to be sampled."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from .effects import Effect
from .flow import Flow
from .lines import Lines
from .loops import step_loop
from .source import Function, Scope, Source

_DEEPEST = 4
"""Chosen: calls of the user's functions followed in succession."""


def untrained(flow: Flow, lines: Lines) -> tuple[list[Effect], list[Effect]]:
    """Statements on the way to the update in which gradients are off: those the loss is computed from, and
    all others."""
    beside = [one for one in flow.effects if one.node not in flow.spine and not _is_plain(one)]
    own = [one for one in beside if step_loop(flow, one) is None]
    off = [one for one in own if _without(flow, lines, one.source, one.scope, [one.node], _DEEPEST)]
    feeding = [one for one in off if flow.feeds([one.node])]
    return feeding, [one for one in off if one not in feeding]


def _is_plain(effect: Effect) -> bool:
    """A definition, or code that no loop repeats where it stands."""
    return isinstance(effect.node, Function | ast.ClassDef) or not effect.source.loops(effect.node)


def _without(
    flow: Flow, lines: Lines, source: Source, scope: Scope, nodes: Iterable[ast.stmt], deep: int
) -> bool:
    """Whether one of these statements, or a function of the user's that it calls, is without gradients."""
    names = flow.reader.names(source)
    for node in nodes:
        if lines.without_gradients(source.file, node.lineno):
            return True
        for call in ast.walk(node) if deep else ():
            target = names.resolve(call.func, scope) if isinstance(call, ast.Call) else None
            if target is None or target.source is None or not isinstance(target.node, Function):
                continue
            inside = target.source.statements(target.node)
            if _without(flow, lines, target.source, target.node, inside, deep - 1):
                return True
    return False
