"""Reads the statements and functions of the user's files, each once, and remembers what they do."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from .effects import Effect, Summary, place_prefix
from .names import Names, parameters
from .reaching import definitions
from .source import Function, Scope, Source
from .statements import Statement


class Reader:
    """Reads statements; keeps what is known about each file's names and each function."""

    def __init__(self) -> None:
        self._names: dict[str, Names] = {}
        self._effects: dict[ast.stmt, Effect] = {}
        self._summaries: dict[Function, Summary] = {}
        self.aliases: dict[str, set[str]] = {}
        """Place → places whose object it may be, or be part of."""

    def names(self, source: Source) -> Names:
        if source.file not in self._names:
            self._names[source.file] = Names(source, self.names)
        return self._names[source.file]

    def effects(self, source: Source, scope: Scope) -> list[Effect]:
        """The effects of all statements in a scope."""
        return [self.effect(source, scope, one) for one in source.statements(scope)]

    def effect(self, source: Source, scope: Scope, node: ast.stmt) -> Effect:
        if node not in self._effects:
            found = Effect(node, source, scope)
            self._effects[node] = found
            Statement(self, found).read()
        return self._effects[node]

    def argument(self, effect: Effect, value: ast.expr) -> tuple[set[str], set[str]]:
        """(places an argument of a call reads, places whose object it is)."""
        apart = Effect(effect.node, effect.source, effect.scope)
        statement = Statement(self, apart)
        statement.evaluate(value)
        return apart.reads, statement.roots(value)

    def summary(self, source: Source, function: Function) -> Summary:
        """What calling a function does. A recursive call adds nothing."""
        if function not in self._summaries:
            found = Summary(f"{place_prefix(source, function)}|", parameters(function))
            self._summaries[function] = found
            for one in self.effects(source, function):
                found.reads |= one.reads
                found.changes |= self.objects(one.changes) | {each for each in one.binds if "self|" in each}
                found.changes |= {each for each in one.binds if not each.startswith(found.places)}
                found.maybe |= self.objects(one.maybe)
                local = {each for each in one.binds if each.startswith(found.places)}
                found.carries |= self.objects(one.carries - local)
                found.apis |= one.apis
                found.update |= one.update or bool(one.leads)
                found.moves |= one.moves
                found.opaque |= one.opaque
                found.gradients |= one.gradients
        return self._summaries[function]

    def bound_above(self, effect: Effect) -> set[ast.stmt]:
        """Statements in its scope that may have bound what a statement reads."""
        found: set[ast.stmt] = set()
        for place in effect.reads:
            found |= definitions(effect.source, effect.node, self.binder(effect, place))
        return found

    def binder(self, effect: Effect, place: str) -> Callable[[ast.stmt], bool]:
        """A check for whether a statement of the same scope binds a place."""
        return lambda node: place in self.effect(effect.source, effect.scope, node).binds

    def objects(self, places: Iterable[str]) -> set[str]:
        """These places, and all others whose objects they may be."""
        found, rest = set(places), list(places)
        while rest:
            for one in self.aliases.get(rest.pop(), ()):
                if one not in found:
                    found.add(one)
                    rest.append(one)
        return found
