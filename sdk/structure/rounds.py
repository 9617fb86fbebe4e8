"""The loop a hot line is in, below the loop over the steps: could all its rounds be done at once?"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import takewhile

from .effects import Effect
from .flow import Flow
from .names import UNKNOWN, Names, Target
from .places import Place
from .reader import Reader
from .source import Loop, Scope, Source, heads, read
from .statements import Statement

_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_OF_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
"""Names of comprehensions on a stack."""
_REPEATING = ("builtins.map", "builtins.filter", "functools.reduce")


def batchable(flow: Flow, frames: Sequence[Place]) -> tuple[str, int] | None:
    """(file, line) of the innermost loop or comprehension around a stack, innermost call first, if no round
    of it needs an earlier one. The moves of an agent do; the environments that it plays side by side do not.
    What a library's environment does in a move is nothing to write otherwise."""
    if frames and _moves(flow.reader, frames[0]):
        return None
    comprehended = _comprehended(frames)
    if comprehended is not None:
        source, node, rounds = comprehended
        if node in flow.spine or _passes_on(flow.reader, source, node, rounds):
            return None
        return source.file, rounds.lineno
    where, loop = _innermost(frames)
    if where is None or loop is None or loop in flow.spine or _carries(flow.reader, where, loop):
        return None
    return where.file, loop.lineno


def within_turns(flow: Flow, frames: Sequence[Place]) -> bool:
    """Whether the loop that could be done at once is in another whose rounds go in turn: one round of it is
    left for each of those."""
    found = batchable(flow, frames)
    return found is not None and any(
        _takes_turns(flow, *one)
        for one in takewhile(lambda one: one[1] not in flow.spine, _outward(frames))
        if (one[0].file, one[1].lineno) != found
    )


def _moves(reader: Reader, place: Place) -> bool:
    source = read(place.file)
    node = source.statement_at(place.line) if source else None
    return source is not None and node is not None and reader.effect(source, source.scope(node), node).moves


def _comprehended(frames: Sequence[Place]) -> tuple[Source, ast.stmt, _Comprehension] | None:
    """The comprehension that a stack goes through, if it is nearer than any loop. It is a call of its own, or
    (from Python 3.12) the only one of its statement."""
    for place in frames:
        source = read(place.file)
        node = source.statement_at(place.line) if source else None
        if source is None or node is None:
            continue
        around = [
            one
            for one in heads(node)
            if isinstance(one, _Comprehension) and one.lineno <= place.line <= (one.end_lineno or one.lineno)
        ]
        if around and (place.name.endswith(_OF_COMPREHENSIONS) or _is_all(node, around[0])):
            return source, node, around[-1]
        if source.loops(node):
            return None
    return None


def _is_all(node: ast.stmt, rounds: _Comprehension) -> bool:
    """Whether a statement does nothing but to keep what a comprehension makes, taken apart or not."""
    value = getattr(node, "value", None)
    while isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords:
        value = value.args[0]
    return (value.value if isinstance(value, ast.Starred) else value) is rounds


def _passes_on(reader: Reader, source: Source, node: ast.stmt, rounds: _Comprehension) -> bool:
    """Whether a round of a comprehension reads what an earlier one has bound or changed; its items are its
    own."""
    reader.effect(source, source.scope(node), node)  # what its items are part of
    inner = Effect(node, source, source.scope(node))
    statement = Statement(reader, inner)
    for value in (rounds.key, rounds.value) if isinstance(rounds, ast.DictComp) else (rounds.elt,):
        statement.evaluate(value)
    item = {place for one in rounds.generators for place in statement.places(one.target)}
    changed = (inner.changes | inner.maybe) - item
    return bool(inner.binds) or bool((inner.reads - item) & reader.objects(changed))


def in_turn(flow: Flow, frames: Sequence[Place]) -> bool:
    """Whether what a line does in a round of that loop needs what the round before has ended with: a decoder
    reads its own last word, an integrator the state it has come to. A statement that only continues its own
    value does not count: a sum can be taken at once, and a recurrent layer takes the whole sequence. Nor do
    others of the same loop: what is worked out for each round by itself can be worked out for all."""
    around = next(_outward(frames), None)
    return around is not None and around[1] not in flow.spine and _takes_turns(flow, *around)


def _takes_turns(flow: Flow, source: Source, loop: Loop, node: ast.stmt) -> bool:
    """The same for a loop and a statement in it."""
    reader, scope = flow.reader, source.scope(loop)
    inside = set(ast.walk(loop)) - {loop}
    around = [one for one in source.outward(node) if one in inside and isinstance(one, ast.If | ast.While)]
    found, rest = set[ast.stmt](), [node, *(one for one in around if isinstance(one, ast.stmt))]
    while rest:
        effect = reader.effect(source, scope, rest.pop())
        found.add(effect.node)
        if _bound_later(reader, effect, inside) - {effect.node} or _goes_on(
            reader, source, loop, effect.node
        ):
            return True
        rest += (reader.bound_above(effect) & inside) - found
    return False


def _goes_on(reader: Reader, source: Source, loop: Loop, node: ast.stmt) -> bool:
    """Whether a statement passes its own last value to the user's code, and that is all that a round begins
    with: a step of an integrator, a block applied again and again. Where rounds count through something, it
    may be a recurrent layer that takes a sequence."""
    if not isinstance(node, ast.Assign) or not isinstance(loop, ast.For) or _counters(loop) & _used(loop):
        return False
    names, scope = reader.names(source), source.scope(loop)
    own = {text for target in node.targets for text in _texts(target)}
    calls = [one for one in ast.walk(node.value) if isinstance(one, ast.Call)]
    given = [(one, {text for part in (*one.args, *one.keywords) for text in _texts(part)}) for one in calls]
    return any(own & parts and _is_own(names, names.resolve(one.func, scope)) for one, parts in given)


def _is_own(names: Names, target: Target) -> bool:
    """The user's definition, a module, or something unknown that is called; no library function, and no
    method of an unknown object but for the user's."""
    api = target.api
    method = api.rpartition(".")[2] in names.methods
    return (
        target.node is not None
        or api == UNKNOWN
        or (api.startswith(UNKNOWN) and method)
        or api.endswith("()")
    )


def _counters(loop: ast.For | ast.AsyncFor) -> set[str]:
    return {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}


def _used(loop: Loop) -> set[str]:
    """Names read in the loop's rounds."""
    names = (one for part in loop.body for one in ast.walk(part) if isinstance(one, ast.Name))
    return {one.id for one in names if isinstance(one.ctx, ast.Load)}


def _texts(node: ast.AST) -> set[str]:
    """The variables in an expression: "state", "self.h"."""
    return {ast.unparse(one) for one in ast.walk(node) if isinstance(one, ast.Name | ast.Attribute)} - {
        "self"
    }


def polls(flow: Flow, frames: Sequence[Place]) -> bool:
    """Whether that loop asks again and again until something has happened."""
    _, loop = _innermost(frames)
    return isinstance(loop, ast.While) and loop not in flow.spine


def once(flow: Flow, frames: Sequence[Place]) -> bool:
    """Whether the user's code surely runs a line once wherever it is called from, or once for each layer of a
    stack: no other loop, comprehension or call of itself lies between it and the loop over the steps. Many
    calls are then many places, or many layers."""
    called: set[tuple[Scope, str]] = set()
    for place in frames:
        source = read(place.file)
        node = source.statement_at(place.line) if source else None
        if source is None or node is None or _repeats(flow.reader, source, node):
            return False
        function = source.scope_at(place.line), place.name  # every module has a `forward`
        if function in called:
            return False
        called.add(function)
        loops = [one for one in (node, *source.loops(node)) if isinstance(one, Loop)]
        if any(one not in flow.spine and not _is_stack(flow.reader, source, one) for one in loops):
            return False
        if any(one in flow.spine for one in loops):
            return True
    return False


def _is_stack(reader: Reader, source: Source, loop: Loop) -> bool:
    """Whether each round calls another of what the loop goes through with what the one before returned:
    `for layer in self.layers: x = layer(x)`."""
    if not isinstance(loop, ast.For):
        return False
    own = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
    called = (one.func for part in loop.body for one in ast.walk(part) if isinstance(one, ast.Call))
    return any(_is_item(one, own) for one in called) and _carries(reader, source, loop)


def _is_item(function: ast.expr, own: set[str]) -> bool:
    """`layer`, or `layers[i]`, for names that are others in every round."""
    if isinstance(function, ast.Subscript):
        return any(isinstance(one, ast.Name) and one.id in own for one in ast.walk(function.slice))
    return isinstance(function, ast.Name) and function.id in own


def _repeats(reader: Reader, source: Source, node: ast.stmt) -> bool:
    """Whether a statement calls something once for each of many."""
    names, scope = reader.names(source), source.scope(node)
    return any(
        isinstance(one, _Comprehension)
        or (isinstance(one, ast.Call) and names.resolve(one.func, scope).api in _REPEATING)
        for one in ast.walk(node)
        if not isinstance(node, Loop)
    )


def over_operations(frames: Sequence[Place]) -> bool:
    """Whether no round of the innermost loop around a stack calls a module on the way to the line: a loop
    over operations, though it may itself be in a module's `forward`."""
    for place in frames:
        source = read(place.file)
        node = source.statement_at(place.line) if source else None
        if place.module or source is None or node is None:
            return False
        if source.loops(node):
            return True
    return False


def _innermost(frames: Sequence[Place]) -> tuple[Source | None, Loop | None]:
    """The innermost loop around a stack, innermost call first."""
    return next(((source, loop) for source, loop, _ in _outward(frames)), (None, None))


def _outward(frames: Sequence[Place]) -> Iterator[tuple[Source, Loop, ast.stmt]]:
    """The loops around a stack, the innermost first, and the statement in each that it goes through."""
    for place in frames:
        source = read(place.file)
        node = source.statement_at(place.line) if source else None
        if source is not None and node is not None:
            yield from ((source, one, node) for one in source.loops(node))


def _effects(reader: Reader, source: Source, loop: Loop) -> list[Effect]:
    inside = set(ast.walk(loop)) - {loop}
    return [one for one in reader.effects(source, source.scope(loop)) if one.node in inside]


def _carries(reader: Reader, source: Source, loop: Loop) -> bool:
    """Whether a round reads what an earlier one has bound or changed. Adding to a list is no reading, and a
    round that keeps to its own item of a list reads no other's."""
    inside = set(ast.walk(loop)) - {loop}
    effects, own = _effects(reader, source, loop), _own_items(reader, source, loop)
    item = reader.effect(source, source.scope(loop), loop).binds if isinstance(loop, ast.For) else set[str]()
    return any(
        _bound_later(reader, one, inside) or _is_changed(reader, one, effects, own, item) for one in effects
    )


def _own_items(reader: Reader, source: Source, loop: Loop) -> set[str]:
    """Places of which every round reads and changes only the item with its own number: `xs[i]` for `i` of a
    `range` or `enumerate`, wherever `xs` is in the loop."""
    names, scope = reader.names(source), source.scope(loop)
    number = _number(loop, names, scope)
    places: dict[str, ast.expr] = {}
    others: set[str] = set()
    for one in (each for part in loop.body for each in ast.walk(part)):
        if not isinstance(one, ast.Name | ast.Attribute):
            continue
        parent, text = source.parents.get(one), ast.unparse(one)
        if (
            isinstance(parent, ast.Subscript)
            and parent.value is one
            and number
            and _first(parent.slice) == number
        ):
            places[text] = one
        else:
            others.add(text)
    apart = [one for text, one in places.items() if text not in others]
    return {each for one in apart for each in reader.argument(Effect(loop, source, scope), one)[0]}


def _number(loop: Loop, names: Names, scope: Scope) -> str:
    """The name of a loop's running number, which is another in every round."""
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return ""
    api, target = names.resolve(loop.iter.func, scope).api, loop.target
    if api == "builtins.enumerate" and isinstance(target, ast.Tuple):
        target = target.elts[0]
    elif api != "builtins.range":
        return ""
    return target.id if isinstance(target, ast.Name) else ""


def _first(index: ast.expr) -> str:
    """ "i" of `xs[i]` and of `xs[i, 0]`."""
    one = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index
    return one.id if isinstance(one, ast.Name) else ""


def _bound_later(reader: Reader, effect: Effect, inside: set[ast.AST]) -> set[ast.stmt]:
    """Statements further down, or itself, that bound in an earlier round what a statement reads."""
    bound = (one for one in reader.bound_above(effect) if one in inside)
    return {one for one in bound if _position(one) >= _position(effect.node)}


def _position(node: ast.stmt) -> tuple[int, int]:
    """Several statements may stand on one line."""
    return node.lineno, node.col_offset


def _is_changed(reader: Reader, effect: Effect, effects: list[Effect], own: set[str], item: set[str]) -> bool:
    """Whether others change what a statement reads. The item that a round is about is its own, and so are the
    names it binds; of `own` places only who knows them by another name sees a change."""
    changed = set().union(*(one.changes | one.maybe for one in effects if one is not effect)) - item
    bound = {place for one in effects for place in one.binds if "self|" not in place}
    seen = reader.objects(effect.reads - own) - bound
    return bool(seen & (reader.objects(changed - own) | (changed & own)))
