"""Whether what a loader makes is drawn at random, according to the source of what it calls for a batch."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from . import apis
from .effects import Effect
from .reaching import definitions
from .reader import Reader
from .source import Function, Loop, Scope, Source, heads, read

SAMPLE_METHODS = ("__getitem__", "__getitems__", "__iter__", "__next__")
"""Methods of a dataset or a sampler that torch calls to get a sample or an index."""
LOADING = ("data", "fetch", "collate")
"""Phases in which a loader works."""
Call = tuple[str, int, str]
"""A place on a stack: file, line, name of the function."""


class Draws:
    """Follows call stacks from a line to the function that the loader itself calls."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def drawn(self, path: Sequence[Call], phase: str) -> bool:
        """Whether what this call stack (innermost first) computes for a sample or a batch is random: the
        function draws, or a line between it and what the loader calls does, or one uses what follows from
        such a draw."""
        asked = self._asked(path, phase)
        if asked is None or self.orders(*path[0][:2]):
            return False
        if asked and self._function_draws(*path[0][:2]):
            return True
        callees = (None, *path)
        return any(self._line_draws(one, callees[at]) for at, one in enumerate(path[: asked + 1]))

    def orders(self, file: str, line: int) -> bool:
        """Whether the line draws nothing but an order: it shuffles in place something that outlives the
        sample that is made, a buffer of a generator or of an object. What it costs grows with the buffer, and
        what is in it stays as it is."""
        source = read(file)
        node = source.statement_at(line) if source else None
        return source is not None and node is not None and self._orders(source, node)

    def gives(self, place: Call, callee: Call) -> bool:
        """Whether a line passes to a function what is drawn anew each time: on the line itself, or above it
        in the loops around it or, without any, in its function."""
        source = read(place[0])
        node = source.statement_at(place[1]) if source else None
        if source is None or node is None:
            return False
        scope, loops = source.scope_at(place[1]), source.loops(node)
        around = loops[-1] if loops else scope
        anew = set(ast.walk(around)) if isinstance(around, Loop | Function) else set()
        effect, above = self._reader.effect(source, scope, node), set[ast.stmt]()
        for value in _given(node, callee[2]):
            if self._expression_draws(source, value):
                return True
            for one in self._reader.argument(effect, value)[0]:
                above |= self._bound(effect, one)
        return self._follow_draws(source, scope, above & anew, anew)

    def _orders(self, source: Source, node: ast.stmt) -> bool:
        call = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(call, ast.Call) or not call.args:
            return False
        scope = source.scope(node)
        api = self._reader.names(source).resolve(call.func, scope).api
        shuffled = call.args[0]
        if apis.job(api) != "shuffle" or api.rpartition(".")[2] != "shuffle":
            return False
        if isinstance(shuffled, ast.Attribute):
            return isinstance(shuffled.value, ast.Name) and source.owner(scope) is not None
        return isinstance(shuffled, ast.Name) and self._outlives_rounds(source, node, shuffled)

    def _outlives_rounds(self, source: Source, node: ast.stmt, name: ast.Name) -> bool:
        """Whether a name is bound outside the rounds in which a generator hands out what it makes."""
        rounds = next((one for one in source.loops(node) if _yields(one)), None)
        if rounds is None:
            return False
        effect = self._reader.effect(source, source.scope(node), node)
        place = self._reader.names(source).place(name.id, source.scope(node))
        inside = set(ast.walk(rounds))
        return not any(one in inside for one in self._bound(effect, place))

    def _bound(self, effect: Effect, place: str) -> set[ast.stmt]:
        return definitions(effect.source, effect.node, self._reader.binder(effect, place))

    def _asked(self, path: Sequence[Call], phase: str) -> int | None:
        """Which of the calls is the one the loader makes: a method of a data set or sampler, else the collate
        function, whatever it is (a method, an object, a lambda). None: none of them."""
        method = next((at for at, (_, _, name) in enumerate(path) if name in SAMPLE_METHODS), None)
        if method is not None or phase not in LOADING:
            return method
        called = [at for at in range(len(path) - 1) if self._by_library(path[at], path[at + 1])]
        heads = [at for at in called if self._requests(path[at + 1])]
        if heads or called:
            return (heads or called)[-1]
        return None if phase == "data" else len(path) - 1  # in a worker, all of the stack is the loader's

    def _by_library(self, inner: Call, outer: Call) -> bool:
        """Whether a call was made by the library that the outer line called, not by the line itself."""
        source = read(outer[0])
        node = source.statement_at(outer[1]) if source else None
        name = inner[2].rpartition(".")[2]
        if node is None or (name.startswith("<") and name != "<lambda>"):
            return False  # a comprehension is part of its function
        calls = (one.func for one in heads(node) if isinstance(one, ast.Call))
        return all(name != (getattr(one, "id", "") or getattr(one, "attr", "")) for one in calls)

    def _requests(self, place: Call) -> bool:
        """Whether the line asks something for its next item."""
        source = read(place[0])
        node = source.statement_at(place[1]) if source else None
        if source is None or node is None:
            return False
        names, scope = self._reader.names(source), source.scope(node)
        return isinstance(node, Loop) or any(
            isinstance(one, ast.YieldFrom)
            or (isinstance(one, ast.Call) and names.resolve(one.func, scope).api == "builtins.next")
            for one in heads(node)
        )

    def _function_draws(self, file: str, line: int) -> bool:
        source = read(file)
        scope = source.scope_at(line) if source else None
        if source is None or not isinstance(scope, Function):
            return False
        return any(
            any(map(apis.draws, one.apis)) and not self._orders(source, one.node)
            for one in self._reader.effects(source, scope)
        )

    def _line_draws(self, place: Call, callee: Call | None) -> bool:
        """Whether the statement draws, or reads what follows from a statement of its function that does. What
        is drawn in the callee is not asked here: its own lines tell."""
        file, line, name = place
        source = read(file)
        node = source.statement_at(line) if source else None
        if source is None or node is None:
            return False
        if name.endswith("<lambda>"):
            return any(self._expression_draws(source, one.body) for one in _lambdas(node, line))
        scope = source.scope_at(line)
        effect = self._reader.effect(source, scope, node)
        drawn = any(map(apis.draws, effect.apis - self._apis_of(callee)))
        if drawn and not self._orders(source, node):
            return True
        return self._follow_draws(source, scope, self._above(effect) - {node})

    def _follow_draws(
        self, source: Source, scope: Scope, rest: set[ast.stmt], among: set[ast.AST] | None = None
    ) -> bool:
        """Whether one of these statements draws, or one from which they follow (among these, if given)."""
        seen = set(rest)
        while rest:
            effect = self._reader.effect(source, scope, rest.pop())
            if any(map(apis.draws, effect.apis)) and not self._orders(source, effect.node):
                return True
            above = self._above(effect) - seen
            rest |= above if among is None else above & among
            seen |= above
        return False

    def _above(self, effect: Effect) -> set[ast.stmt]:
        return self._reader.bound_above(effect) | self._filled_before(effect)

    def _apis_of(self, place: Call | None) -> set[str]:
        source = read(place[0]) if place is not None else None
        scope = source.scope_at(place[1]) if source is not None and place is not None else None
        if source is None or not isinstance(scope, Function):
            return set()
        return self._reader.summary(source, scope).apis

    def _expression_draws(self, source: Source, value: ast.expr) -> bool:
        """A lambda is no scope of its own: what surrounds it in its statement is another matter."""
        scope = source.scope(value)
        apart = ast.copy_location(ast.Expr(value), value)
        return any(map(apis.draws, self._reader.effect(source, scope, apart).apis))

    def _filled_before(self, effect: Effect) -> set[ast.stmt]:
        """Statements that put something into what a statement reads, before it or in an earlier round."""
        source, scope = effect.source, effect.scope
        return {
            one.node
            for one in self._reader.effects(source, scope)
            if one.changes & effect.reads and _may_precede(source, one.node, effect.node, scope)
        }


def _given(node: ast.stmt, name: str) -> list[ast.expr]:
    """What a statement passes to a function of this name."""
    calls = [one for one in heads(node) if isinstance(one, ast.Call)]
    called = [one for one in calls if name == (getattr(one.func, "id", "") or getattr(one.func, "attr", ""))]
    return [value for one in called for value in (*one.args, *(each.value for each in one.keywords))]


def _may_precede(source: Source, first: ast.stmt, second: ast.stmt, scope: Scope) -> bool:
    if not isinstance(scope, Function):
        return False  # what a script does at its top is done once, before
    return first.lineno < second.lineno or bool(set(source.loops(first)) & set(source.loops(second)))


def _yields(loop: Loop) -> bool:
    return any(isinstance(one, ast.Yield | ast.YieldFrom) for part in loop.body for one in ast.walk(part))


def _lambdas(node: ast.stmt, line: int) -> list[ast.Lambda]:
    found = (one for one in heads(node) if isinstance(one, ast.Lambda))
    return [one for one in found if one.lineno <= line <= (one.end_lineno or one.lineno)]
