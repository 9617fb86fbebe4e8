"""What a training step needs: everything from which `backward()` and the update are reached.

The statements of all functions on the way to the update are taken together; where one calls another, its
arguments and its result link them. From what the update reads, definitions are followed backwards until
nothing new is found, also from one iteration of the loop into the previous one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from . import apis
from .effects import RESULT, Effect, place_prefix
from .names import arguments
from .reaching import definitions
from .reader import Reader
from .source import Function, Loop, Scope, Source

YES, NO, UNKNOWN = "yes", "no", "unknown"


class Flow:
    """The functions of the training loop, taken together."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.spine: set[ast.stmt] = set()
        """Statements that are part of the update or lead to it, and the compound statements around them."""
        self.step_loops: dict[Loop, bool] = {}
        """Loops checked so far → whether an iteration is a step."""
        self._effects: dict[ast.stmt, Effect] = {}
        self._scopes: set[Scope] = set()
        self._outside: set[str] = set()
        """Results that go to code we have not read."""
        self._passed: dict[str, list[tuple[Effect, set[str]]]] = {}
        """Parameter of a linked function → (the call, what the argument reads)."""
        self._sure: set[ast.stmt] | None = None
        self._possible: set[ast.stmt] = set()
        self._values: set[ast.stmt] = set()
        self._learnt: set[str] = set()

    def add(self, source: Source, scope: Scope, *, linked: bool = False) -> None:
        """Add a function or script in which training was seen. Unless a function already added calls it, its
        result goes to code we have not read."""
        if scope in self._scopes:
            return
        self._scopes.add(scope)
        self._sure = None
        if not linked:
            self._outside.add(f"{place_prefix(source, scope)}|{RESULT}")
        for effect in self.reader.effects(source, scope):
            self._effects[effect.node] = effect
            if effect.update or effect.leads:
                self._mark(effect)
            for call, where, function in effect.leads:
                self._link(effect, call, where, function)

    @property
    def effects(self) -> list[Effect]:
        """The effects of all statements added."""
        return list(self._effects.values())

    def _mark(self, effect: Effect) -> None:
        self.spine.add(effect.node)
        for one in effect.source.outward(effect.node):
            if isinstance(one, Scope):
                break
            if isinstance(one, ast.stmt):
                self.spine.add(one)

    def _link(self, effect: Effect, call: ast.Call, source: Source, function: Function) -> None:
        prefix = place_prefix(source, function)
        effect.reads.add(f"{prefix}|{RESULT}")
        for name, value in arguments(call, source, function):
            reads, roots = self.reader.argument(effect, value)
            self._passed.setdefault(f"{prefix}|{name}", []).append((effect, reads))
            self.reader.aliases.setdefault(f"{prefix}|{name}", set()).update(roots)
        self.add(source, function, linked=True)

    def leads_to_update(self, source: Source, line: int) -> None:
        """A line was on the stack during backward or the optimizer's step."""
        self.add(source, source.scope_at(line))
        node = source.statement_at(line)
        effect = self._effects.get(node) if node is not None else None
        simple = not isinstance(node, Loop | ast.If | ast.With | ast.AsyncWith | ast.Try)
        if effect is not None and simple and effect.node not in self.spine:
            effect.update = True
            self._mark(effect)
            self._sure = None

    def needed(self, nodes: Iterable[ast.stmt]) -> str:
        """Whether a step needs what these statements do: yes, no or unknown."""
        self._solve()
        found = list(nodes)
        known = [self._effects[one] for one in found if one in self._effects]
        if len(known) < len(found) or not self.spine:
            return UNKNOWN
        sure = self._sure or set()
        if any(one.node in sure or self._leaves(one) for one in known):
            return YES
        if any(one.node in self._possible or one.opaque for one in known):
            return UNKNOWN
        return NO

    def feeds(self, nodes: Iterable[ast.stmt]) -> bool:
        """Whether the loss is computed from what these statements give. What only decides when to stop, or
        how fast to learn, is needed, too, but feeds nothing."""
        self._solve()
        return any(one in self._values for one in nodes)

    def learns(self, nodes: Iterable[ast.stmt]) -> bool:
        """Whether what these statements bind is computed from parameters on the way to `backward()`: it has
        gradients, unless they are switched off."""
        self._solve()
        sure = self._sure or set()
        return any(node in sure and self._effects[node].binds & self._learnt for node in nodes)

    def _made_from_parameters(self) -> set[str]:
        """Places whose values depend on what an optimizer was given, or on tensors made to get gradients."""
        effects = self._effects.values()
        found = {place for one in effects if one.optimizes for place in one.reads | one.binds}
        found |= {place for one in effects if one.parameters for place in one.binds}
        size = -1
        while size != len(found):
            size = len(found)
            for one in self._effects.values():
                found |= one.binds if one.reads & found else set()
        return found

    def _leaves(self, effect: Effect) -> bool:
        """Whether it ends a function of the training loop, or a loop that contains the update, or one of that
        loop's iterations."""
        if not effect.leaves:
            return False
        if isinstance(effect.node, ast.Return | ast.Raise):
            return True
        return any(loop in self.spine for loop in effect.source.loops(effect.node)[:1])

    def _solve(self) -> None:
        if self._sure is None:
            self._sure = self._reached(maybe=False)
            self._possible = self._reached(maybe=True)
            self._values = self._reached_as_values()
            self._learnt = self._made_from_parameters()

    def _reached(self, *, maybe: bool) -> set[ast.stmt]:
        search = _Search(self.reader, self._effects, self._passed, maybe)
        for effect in self._effects.values():
            if effect.update or effect.leads or effect.moves or effect.binds & self._outside:
                search.need(effect)
            elif self._leaves(effect):
                search.guards(effect)
        return search.found

    def _reached_as_values(self) -> set[ast.stmt]:
        """What the losses are computed from. Where a library calls `backward()`: what it is given."""
        search = _Search(self.reader, self._effects, self._passed, maybe=False, values=True)
        losses = [one for one in self._effects.values() if one.update and _differentiates(one)]
        given = [one for one in self._effects.values() if one.binds & self._outside]
        for effect in losses or given:
            search.need(effect)
        return search.found


def _differentiates(effect: Effect) -> bool:
    return any(map(apis.differentiates, effect.apis))


class _Search:
    """Follows definitions backwards from the update. `maybe`: also through calls that may change things;
    `values`: only what values are computed from, neither what decides whether they are nor how the update
    changes the weights."""

    def __init__(
        self,
        reader: Reader,
        effects: dict[ast.stmt, Effect],
        passed: dict[str, list[tuple[Effect, set[str]]]],
        maybe: bool,
        values: bool = False,
    ) -> None:
        self.found: set[ast.stmt] = set()
        self._values = values
        self._reader, self._effects, self._passed = reader, effects, passed
        self._seen: set[tuple[str, ast.stmt]] = set()
        self._binders: dict[str, list[Effect]] = {}
        self._changers: dict[str, list[Effect]] = {}
        for effect in effects.values():
            for place in effect.binds:
                self._binders.setdefault(place, []).append(effect)
            for place in reader.objects(effect.changes | (effect.maybe if maybe else set())):
                # A linked function's own statements say what it changes.
                if not effect.leads and not (values and effect.update):
                    self._changers.setdefault(place, []).append(effect)

    def need(self, effect: Effect) -> None:
        """A step needs this statement, and so what it reads and what decides whether it runs."""
        if effect.node in self.found:
            return
        self.found.add(effect.node)
        for place in effect.reads:
            if not effect.leads or place.endswith(f"|{RESULT}"):
                self._place(place, effect)
        if not self._values:
            self.guards(effect)

    def guards(self, effect: Effect) -> None:
        """The heads of the compound statements around a statement."""
        for one in effect.source.outward(effect.node):
            if isinstance(one, Scope):
                return
            if isinstance(one, ast.stmt) and one in self._effects:
                self.need(self._effects[one])

    def _place(self, place: str, reader: Effect) -> None:
        if (place, reader.node) in self._seen:
            return
        self._seen.add((place, reader.node))
        for effect in self._bound(place, reader):
            self.need(effect)
        for call, reads in self._passed.get(place, ()):
            for one in reads:
                self._place(one, call)
        for one in self._reader.objects({place}):
            for effect in self._changers.get(one, ()):
                self.need(effect)

    def _bound(self, place: str, reader: Effect) -> Iterable[Effect]:
        """Statements that may have bound what is read, by the order of blocks within a scope."""
        own = f"{place_prefix(reader.source, reader.scope)}|"
        if not place.startswith(own):
            return self._binders.get(place, ())
        nodes = definitions(reader.source, reader.node, lambda node: self._binds(node, place))
        return [self._effects[one] for one in nodes]

    def _binds(self, node: ast.stmt, place: str) -> bool:
        effect = self._effects.get(node)
        return effect is not None and place in effect.binds
