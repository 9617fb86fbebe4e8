"""The loop a hot line is in, below the loop over the steps: could all its rounds be done at once?"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .effects import Effect
from .flow import Flow
from .places import Place
from .reader import Reader
from .source import Loop, Source, read

_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_REPEATING = ("builtins.map", "builtins.filter", "functools.reduce")


def batchable(flow: Flow, frames: Sequence[Place]) -> tuple[str, int] | None:
    """(file, line) of the innermost loop around a stack, innermost call first, if no round of it needs an
    earlier one. The moves of an agent do; the environments that it plays side by side do not."""
    source, loop = _innermost(frames)
    if source is None or loop is None or loop in flow.spine or _carries(flow.reader, source, loop):
        return None
    return source.file, loop.lineno


def in_turn(flow: Flow, frames: Sequence[Place]) -> bool:
    """Whether a round of that loop begins with what the one before has ended with: a decoder that reads its
    own last word. A statement that only continues its own value does not count: a sum can be taken at once,
    and a recurrent layer takes the whole sequence."""
    source, loop = _innermost(frames)
    if source is None or loop is None or loop in flow.spine:
        return False
    inside = set(ast.walk(loop)) - {loop}
    return any(
        _bound_later(flow.reader, one, inside) - {one.node} for one in _effects(flow.reader, source, loop)
    )


def polls(flow: Flow, frames: Sequence[Place]) -> bool:
    """Whether that loop asks again and again until something has happened."""
    _, loop = _innermost(frames)
    return isinstance(loop, ast.While) and loop not in flow.spine


def once(flow: Flow, frames: Sequence[Place]) -> bool:
    """Whether the user's code surely runs a line once wherever it is called from: no loop, comprehension or
    call of itself lies between it and the loop over the steps. Many calls are then many places."""
    called: set[tuple[str, str]] = set()
    for place in frames:
        source = read(place.file)
        node = source.statement_at(place.line) if source else None
        if source is None or node is None or place[::2] in called or _repeats(flow.reader, source, node):
            return False
        called.add(place[::2])
        loops = [one for one in (node, *source.loops(node)) if isinstance(one, Loop)]
        if loops:
            return all(one in flow.spine for one in loops)
    return False


def _repeats(reader: Reader, source: Source, node: ast.stmt) -> bool:
    """Whether a statement calls something once for each of many."""
    names, scope = reader.names(source), source.scope(node)
    return any(
        isinstance(one, _COMPREHENSIONS)
        or (isinstance(one, ast.Call) and names.resolve(one.func, scope).api in _REPEATING)
        for one in ast.walk(node)
        if not isinstance(node, Loop)
    )


def _innermost(frames: Sequence[Place]) -> tuple[Source | None, Loop | None]:
    """The innermost loop around a stack, innermost call first."""
    for place in frames:
        source = read(place.file)
        node = source.statement_at(place.line) if source else None
        loops = source.loops(node) if source is not None and node is not None else []
        if loops:
            return source, loops[0]
    return None, None


def _effects(reader: Reader, source: Source, loop: Loop) -> list[Effect]:
    inside = set(ast.walk(loop)) - {loop}
    return [one for one in reader.effects(source, source.scope(loop)) if one.node in inside]


def _carries(reader: Reader, source: Source, loop: Loop) -> bool:
    """Whether a round reads what an earlier one has bound or changed. Adding to a list is no reading."""
    inside = set(ast.walk(loop)) - {loop}
    effects = _effects(reader, source, loop)
    return any(_bound_later(reader, one, inside) or _is_changed(reader, one, effects) for one in effects)


def _bound_later(reader: Reader, effect: Effect, inside: set[ast.AST]) -> set[ast.stmt]:
    """Statements further down, or itself, that bound in an earlier round what a statement reads."""
    bound = (one for one in reader.bound_above(effect) if one in inside)
    return {one for one in bound if _position(one) >= _position(effect.node)}


def _position(node: ast.stmt) -> tuple[int, int]:
    """Several statements may stand on one line."""
    return node.lineno, node.col_offset


def _is_changed(reader: Reader, effect: Effect, effects: list[Effect]) -> bool:
    others = (one.changes | one.maybe for one in effects if one is not effect)
    return bool(reader.objects(effect.reads) & reader.objects(set().union(*others)))
