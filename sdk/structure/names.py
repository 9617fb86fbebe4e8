"""What a call in the user's code refers to: a library function by its dotted name, or a user definition.

Names are followed through imports, assignments, attributes of `self` and base classes, from file to file.
"torch.save" is that function, "logging.getLogger().info" a method of what another call returned, "?.item" a
method of something unknown.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

from . import imports
from .effects import place_prefix
from .source import Definition, Function, Scope, Source, known

UNKNOWN = "?"
_DEEPEST = 12
"""Chosen: names, attributes and assignments followed in succession."""


class Target(NamedTuple):
    """What an expression refers to."""

    api: str
    """Dotted name of a library object, or a name that begins with "?"."""
    node: Definition | None = None
    """The user's own definition."""
    source: Source | None = None
    """The file that definition is in."""
    made: bool = False
    """It is an instance of the class, or the function's result, not the definition itself."""


NOTHING = Target(UNKNOWN)


class Names:
    """The names of one file; `of` gives those of another."""

    def __init__(self, source: Source, of: Callable[[Source], Names]) -> None:
        self.source = source
        self._of = of
        self._imports: dict[Scope, dict[str, str]] = {}
        self._bound: dict[Scope, dict[str, list[ast.expr | None]]] = {}
        self._defined: dict[Scope, dict[str, Definition]] = {}
        self._attributes: dict[ast.ClassDef, dict[str, list[tuple[ast.expr, Function]]]] = {}
        self._places: dict[tuple[str, Scope], str] = {}
        self._given: dict[tuple[Function, str], Target] = {}
        self._origins: dict[ast.ClassDef, tuple[ast.ClassDef, Source]] = {}
        self._calls: dict[str, list[tuple[ast.Call, Scope]]] | None = None
        """Calls by the name of what is called, once somebody has asked."""
        self.methods = {
            one.name
            for owner in source.names
            if isinstance(owner, ast.ClassDef)
            for one in owner.body
            if isinstance(one, Function)
        }
        """Names of the user's own methods: a method of an unknown object may be one of them."""

    def resolve(self, node: ast.expr, scope: Scope, depth: int = 0) -> Target:
        """What an expression in a scope refers to."""
        if depth > _DEEPEST:
            return NOTHING
        if isinstance(node, ast.Name):
            return self._name(node.id, scope, depth + 1)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, scope, depth + 1)
        if isinstance(node, ast.Call):
            found = self.resolve(node.func, scope, depth + 1)
            return found._replace(api=f"{found.api}()", made=True)
        if isinstance(node, ast.Await | ast.NamedExpr):
            return self.resolve(node.value, scope, depth + 1)
        return NOTHING

    def _name(self, name: str, scope: Scope, depth: int) -> Target:
        for place in self._scopes(scope):
            imported = self._imported(place).get(name)
            if imported is not None:
                return self._member(imported, depth)
            values = self.bindings(place).get(name)
            if values == [None] and isinstance(place, Function) and name in parameters(place):
                return self._passed(name, place, depth)
            if values is not None:
                return self._assigned(values, place, depth)
            local = self._definitions(place).get(name)
            if local is not None:
                return Target("", local, self.source)
        return Target(f"builtins.{name}") if hasattr(builtins, name) else NOTHING

    def is_variable(self, name: str, scope: Scope) -> bool:
        """Whether a name holds a value: not a module, a builtin, or a function or class of the file."""
        for place in self._scopes(scope):
            if name in self.bindings(place):
                return True
            if name in self._definitions(place) or name in self._imported(place):
                return False
        return not hasattr(builtins, name)

    def place(self, name: str, scope: Scope) -> str:
        """A name in the scope that binds it, looked up as in Python."""
        if (name, scope) not in self._places:
            binds = (one for one in self._scopes(scope) if name in self.bindings(one))
            scope_of = next((one for one in binds if name not in _declared(one)), self.source.tree)
            self._places[name, scope] = f"{place_prefix(self.source, scope_of)}|{name}"
        return self._places[name, scope]

    def _scopes(self, scope: Scope) -> list[Scope]:
        """A scope and those around it, in Python's lookup order."""
        outer = [one for one in self.source.outward(scope) if isinstance(one, Scope)]
        return [scope, *outer]

    def _assigned(self, values: list[ast.expr | None], scope: Scope, depth: int) -> Target:
        """What a name with these values refers to: unknown, unless all refer to the same."""
        found = {self.resolve(one, scope, depth) if one is not None else NOTHING for one in values}
        return found.pop() if len(found) == 1 else NOTHING

    def _passed(self, name: str, function: Function, depth: int) -> Target:
        """What a parameter refers to: the same in every call of the function in this file and in those read
        besides, else unknown."""
        if (function, name) in self._given:
            return self._given[function, name]
        self._given[function, name] = NOTHING  # a function that calls itself passes on what it was given
        everywhere = [self, *(self._of(one) for one in known() if one is not self.source)]
        made: set[Definition] = {function}
        if function.name == "__init__":
            made.update(*(names.classes_made_by(function, depth) for names in everywhere))
        found = set()
        for names in everywhere:
            for call, scope in names.calls_of(made, depth):
                given = dict(arguments(call, self.source, function)).get(name)
                found.add(names.resolve(given, scope, depth) if given is not None else NOTHING)
        if len(found) == 1:
            self._given[function, name] = found.pop()
        return self._given[function, name]

    def classes_made_by(self, function: Function, depth: int) -> set[Definition]:
        """The classes of this file whose `__init__`, their own or inherited, is this function."""
        classes = [one for one in self.source.names if isinstance(one, ast.ClassDef)]
        made = {one: self.method(one, function.name, depth) for one in classes}
        return {one for one, method in made.items() if method is not None and method.node is function}

    def calls_of(self, made: set[Definition], depth: int) -> list[tuple[ast.Call, Scope]]:
        """Calls of these functions and classes in this file."""
        if self._calls is None:
            self._calls = {}
            for one in ast.walk(self.source.tree):
                if isinstance(one, ast.Call):
                    name = getattr(one.func, "id", "") or getattr(one.func, "attr", "")
                    self._calls.setdefault(name, []).append((one, self.source.scope_at(one.lineno)))
        named = [pair for one in made for pair in self._calls.get(one.name, [])]
        return [(one, scope) for one, scope in named if self.resolve(one.func, scope, depth).node in made]

    def _attribute(self, node: ast.Attribute, scope: Scope, depth: int) -> Target:
        owner = self.source.owner(scope)
        if isinstance(node.value, ast.Name) and owner is not None and node.value.id == self_name(scope):
            return self._of_self(owner, node.attr, depth)
        if owner is not None and _is_super(node.value):
            return self._of_super(owner, node.attr, depth)
        base = self.resolve(node.value, scope, depth)
        if isinstance(base.node, ast.ClassDef) and base.source is not None:
            method = self._of(base.source).method(base.node, node.attr, depth)
            return method or Target(f"{UNKNOWN}.{node.attr}")
        if base.node is not None:
            return Target(f"{UNKNOWN}.{node.attr}")
        return self._member(f"{base.api}.{node.attr}", depth)

    def _member(self, dotted: str, depth: int) -> Target:
        """A member of a module; if the module is one of the user's files, what the name refers to there."""
        module, _, name = dotted.rpartition(".")
        source = imports.module_source(module)
        if source is None or dotted in sys.modules:
            return Target(dotted)
        there = self._of(source)
        if depth > _DEEPEST or not there.binds(name):
            return Target(f"{UNKNOWN}.{name}")
        return there.resolve(ast.Name(name), source.tree, depth)

    def binds(self, name: str) -> bool:
        """Whether the file itself gives the name a meaning."""
        tree = self.source.tree
        return any(
            name in one for one in (self._imported(tree), self.bindings(tree), self._definitions(tree))
        )

    def method(self, owner: ast.ClassDef, name: str, depth: int = 0) -> Target | None:
        """A method of a class or of the user's classes that it is derived from."""
        own = [one for one in owner.body if isinstance(one, Function) and one.name == name]
        if own:
            return Target("", own[0], self.source)
        bases = self._bases(owner, depth + 1)
        inherited = (self._of(source).method(node, name, depth + 1) for node, source in bases)
        return next(filter(None, inherited), None)

    def origin(self, owner: ast.ClassDef, depth: int = 0) -> tuple[ast.ClassDef, Source]:
        """The user's class that a class is derived from, through all others: it stands for their `self`."""
        if owner not in self._origins:
            node, source = next(self._bases(owner, depth + 1), (owner, self.source))
            found = self._of(source).origin(node, depth + 1) if node is not owner else (owner, self.source)
            self._origins[owner] = found
        return self._origins[owner]

    def _bases(self, owner: ast.ClassDef, depth: int) -> Iterator[tuple[ast.ClassDef, Source]]:
        """The user's classes among the bases of a class."""
        for one in owner.bases if depth <= _DEEPEST else ():
            base = self.resolve(one, self.source.scope(owner), depth)
            if isinstance(base.node, ast.ClassDef) and base.source is not None and base.node is not owner:
                yield base.node, base.source

    def _of_super(self, owner: ast.ClassDef, attribute: str, depth: int) -> Target:
        """A method of the base class, which may be a library's."""
        inherited = (
            self._of(source).method(node, attribute, depth) for node, source in self._bases(owner, depth)
        )
        found = next(filter(None, inherited), None)
        bases = [self.resolve(one, self.source.scope(owner), depth) for one in owner.bases]
        library = next((one.api for one in bases if one.api and not one.api.startswith(UNKNOWN)), "")
        return found or Target(f"{library or UNKNOWN}.{attribute}")

    def _of_self(self, owner: ast.ClassDef, attribute: str, depth: int) -> Target:
        method = self.method(owner, attribute, depth)
        if method is not None:
            return method
        if depth > _DEEPEST:
            return NOTHING
        values = self._own(owner).get(attribute, [])
        found = {self.resolve(value, scope, depth) for value, scope in values}
        if not values:
            bases = self._bases(owner, depth + 1)
            found = {self._of(source)._of_self(node, attribute, depth + 1) for node, source in bases}
        if len(found) == 1:
            return found.pop()
        bases_of = [self.resolve(one, self.source.scope(owner), depth).api for one in owner.bases]
        module = any(base.startswith("torch.nn.") for base in bases_of)
        return Target("torch.nn.Module()") if module else Target(f"{UNKNOWN}.{attribute}")

    def _own(self, owner: ast.ClassDef) -> dict[str, list[tuple[ast.expr, Function]]]:
        """Attributes that a class's methods assign, with each value and its method."""
        if owner not in self._attributes:
            found = self._attributes[owner] = {}
            for method in owner.body:
                if isinstance(method, Function):
                    for name, value in _assigned_in(method):
                        found.setdefault(name, []).append((value, method))
        return self._attributes[owner]

    def _definitions(self, scope: Scope) -> dict[str, Definition]:
        """Functions and classes a scope defines; the first if several share a name."""
        if scope not in self._defined:
            found = [one for one in self.source.statements(scope) if isinstance(one, Definition)]
            self._defined[scope] = {one.name: one for one in reversed(found)}
        return self._defined[scope]

    def _imported(self, scope: Scope) -> dict[str, str]:
        """Names a scope imports, and what they refer to."""
        if scope not in self._imports:
            found = self._imports[scope] = {}
            for one in self.source.statements(scope):
                if isinstance(one, ast.Import | ast.ImportFrom):
                    found.update(imports.bound(one, self.source.file))
        return self._imports[scope]

    def bindings(self, scope: Scope) -> dict[str, list[ast.expr | None]]:
        """The names a scope binds, and their values; None for a parameter or a part of a larger value."""
        if scope not in self._bound:
            found: dict[str, list[ast.expr | None]] = {}
            if isinstance(scope, Function):
                found = {name: [None] for name in parameters(scope)}
            for one in self.source.statements(scope):
                for name, value in _bound_by(one):
                    found.setdefault(name, []).append(value)
            self._bound[scope] = found
        return self._bound[scope]


def _declared(scope: Scope) -> set[str]:
    """Names a function declares `global` or `nonlocal`."""
    found = [one for one in scope.body if isinstance(one, ast.Global | ast.Nonlocal)]
    return {name for one in found for name in one.names}


def _assigned_in(method: Function) -> list[tuple[str, ast.expr]]:
    """Attributes a method assigns, and their values."""
    assigned = [one for one in ast.walk(method) if isinstance(one, ast.Assign)]
    return [pair for one in assigned for target in one.targets for pair in _own_values(target, one.value)]


def _own_values(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]]:
    """Values assigned to attributes of a name; if both sides are tuples, they are unpacked."""
    if isinstance(target, ast.Attribute):
        return [(target.attr, value)] if isinstance(target.value, ast.Name) else []
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        sides = zip(target.elts, value.elts, strict=True)
        return [pair for left, right in sides for pair in _own_values(left, right)]
    return []


def _is_super(node: ast.expr) -> bool:
    """`super()`, without arguments."""
    called = node.func if isinstance(node, ast.Call) and not node.args else None
    return isinstance(called, ast.Name) and called.id == "super"


def self_name(scope: Scope) -> str | None:
    """The first parameter of a method."""
    names = parameters(scope) if isinstance(scope, Function) else []
    return names[0] if names else None


def parameters(scope: Function) -> list[str]:
    """Names of all parameters, in order."""
    arguments = scope.args
    found = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    found += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    return [one.arg for one in found]


def arguments(node: ast.Call, source: Source, function: Function) -> list[tuple[str, ast.expr]]:
    """(parameter, expression) pairs of a call to a user function; without a method's `self`."""
    method = source.owner(function) is not None and not _is_static(function)
    names = parameters(function)[1 if method else 0 :]
    found = list(zip(names, node.args, strict=False))
    return found + [(one.arg, one.value) for one in node.keywords if one.arg is not None]


def _is_static(function: Function) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in function.decorator_list)


def _bound_by(node: ast.stmt) -> list[tuple[str, ast.expr | None]]:
    """(name, value) pairs that a statement binds."""
    found: list[tuple[str, ast.expr | None]] = []
    if isinstance(node, ast.Assign):
        for target in node.targets:
            found += _pairs(target, node.value)
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        found.append((node.target.id, node.value))
    elif isinstance(node, ast.AugAssign | ast.For | ast.AsyncFor):
        found += [(name, None) for name in stored(node.target)]
    elif isinstance(node, ast.With | ast.AsyncWith):
        for item in node.items:
            if item.optional_vars is not None:
                found += _pairs(item.optional_vars, item.context_expr)
    return found


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr | None]]:
    """Names in a target with the value each gets; if both sides are tuples, they are unpacked."""
    if isinstance(target, ast.Name):
        return [(target.id, value)]
    both = isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List)
    if both and len(target.elts) == len(value.elts):  # type: ignore[attr-defined]
        sides = zip(target.elts, value.elts, strict=True)  # type: ignore[attr-defined]
        return [pair for left, right in sides for pair in _pairs(left, right)]
    return [(name, None) for name in stored(target)]


def stored(target: ast.expr) -> list[str]:
    """Names a target binds."""
    return [
        one.id for one in ast.walk(target) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    ]
