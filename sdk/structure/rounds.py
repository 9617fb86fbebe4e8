"""The loop a hot line is in, below the loop over the steps: could all its rounds be done at once?"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .effects import Effect
from .flow import Flow
from .places import Place
from .reader import Reader
from .source import Loop, Source, read


def batchable(flow: Flow, frames: Sequence[Place]) -> tuple[str, int] | None:
    """(file, line) of the innermost loop around a stack, innermost call first, if no round of it needs an
    earlier one. The moves of an agent do; the environments that it plays side by side do not."""
    for place in frames:
        source = read(place.file)
        node = source.statement_at(place.line) if source else None
        loops = source.loops(node) if source is not None and node is not None else []
        if source is not None and loops:
            free = loops[0] not in flow.spine and not _carries(flow.reader, source, loops[0])
            return (source.file, loops[0].lineno) if free else None
    return None


def _carries(reader: Reader, source: Source, loop: Loop) -> bool:
    """Whether a round reads what an earlier one has bound or changed. Adding to a list is no reading."""
    inside = set(ast.walk(loop)) - {loop}
    effects = [one for one in reader.effects(source, source.scope(loop)) if one.node in inside]
    return any(_comes_round(reader, one, inside) or _is_changed(reader, one, effects) for one in effects)


def _comes_round(reader: Reader, effect: Effect, inside: set[ast.AST]) -> bool:
    bound = (one for one in reader.bound_above(effect) if one in inside)
    return any(one.lineno >= effect.node.lineno for one in bound)


def _is_changed(reader: Reader, effect: Effect, effects: list[Effect]) -> bool:
    others = (one.changes | one.maybe for one in effects if one is not effect)
    return bool(reader.objects(effect.reads) & reader.objects(set().union(*others)))
