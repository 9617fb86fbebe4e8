"""Methods whose result follows from plain settings alone: a table made anew at every call.

What a function returned is compared in a few steps (`sampling._return_values`), but one that makes thousands
of calls exhausts what profiling may cost. Then the source can tell: no argument, nothing drawn, nothing read
but numbers and texts that are set once, when the object is made.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from . import apis
from .lines import Lines
from .names import parameters, self_name
from .places import Place
from .reader import Reader
from .source import Definition, Function, Source, known, read

_PLAIN = ("int", "float", "bool", "str")
_MAKES = ("__init__", "__post_init__", "__new__")
_KNOWN = re.compile(
    r"math\.\w+|(torch|numpy)\.\w+(\(\)(\.\w+)?)*"
    r"|builtins\.(range|len|min|max|abs|sum|float|int|bool|enumerate|zip|list|tuple|reversed|hasattr|pow|round)"
)
"""Calls whose result depends on their arguments alone."""


class Settled:
    """Answers for the methods on a stack."""

    def __init__(self, reader: Reader, lines: Lines) -> None:
        self._reader, self._lines = reader, lines
        self._known: dict[Function, bool] = {}

    def settled(self, place: Place) -> bool:
        """Whether the method around this line makes an array of nothing but plain settings."""
        source = read(place.file)
        scope = source.scope_at(place.line) if source is not None else None
        if source is None or not isinstance(scope, Function) or scope.name != place.name:
            return False
        return self._is(source, scope) and self._makes_array(source, scope)

    def _makes_array(self, source: Source, method: Function) -> bool:
        return any(
            self._lines.makes_array(source, one) for one in ast.walk(method) if isinstance(one, ast.expr)
        )

    def _is(self, source: Source, method: Function) -> bool:
        if method not in self._known:
            self._known[method] = False  # one that calls itself is not understood
            self._known[method] = self._follows(source, method)
        return self._known[method]

    def _follows(self, source: Source, method: Function) -> bool:
        owner = source.owner(method)
        if owner is None or len(parameters(method)) != 1 or method.name in _MAKES:
            return False
        summary = self._reader.summary(source, method)
        if summary.update or summary.opaque or summary.gradients:
            return False
        if any(apis.draws(one) or not _KNOWN.fullmatch(one) for one in summary.apis):
            return False
        own = set(_attributes(method))
        prefix = f"{source.file}:{source.names[owner]}.self|"
        outside = {one for one in summary.reads if not one.startswith(summary.places)}
        outside -= {one for one in outside if self._is_inner(source, one)}
        if any(not one.startswith(prefix) for one in outside):
            return False
        read_here = {one.removeprefix(prefix) for one in outside} | own
        return all(self._stays(source, owner, method, one) for one in read_here)

    def _is_inner(self, source: Source, place: str) -> bool:
        """A name that only a comprehension binds: no scope of the file has it."""
        prefix = f"{source.file}:|"
        return place.startswith(prefix) and not self._reader.names(source).binds(place.removeprefix(prefix))

    def _stays(self, source: Source, owner: ast.ClassDef, method: Function, attribute: str) -> bool:
        """Whether an attribute is a setting, a method (a property has to follow from settings, too), or what
        only this method keeps."""
        found = self._reader.names(source).method(owner, attribute)
        if found is not None and isinstance(found.node, Function) and found.source is not None:
            return not found.node.decorator_list or self._is(found.source, found.node)
        stored = [one for one in _stores(attribute) if one is not method]
        makers = [one for one in owner.body if isinstance(one, Function) and one.name in _MAKES]
        if any(one not in makers for one in stored):
            return False
        if any(one is method for one in _stores(attribute)):
            return not stored  # its own memory: made of the rest
        return _annotated(owner, attribute) or any(_given_plain(one, attribute) for one in makers)


def _attributes(method: Function) -> Iterator[str]:
    """Attributes of `self` that a method reads or binds."""
    attributes = (one for one in ast.walk(method) if isinstance(one, ast.Attribute))
    for one in attributes:
        if isinstance(one.value, ast.Name) and one.value.id == self_name(method):
            yield one.attr


def _stores(attribute: str) -> Iterator[Definition | None]:
    """The functions, in all files read, that bind or delete an attribute of this name on any object; None for
    code outside functions, and for what binds names that only the run knows."""
    for source in known():
        for one in source.parents:
            named = isinstance(one, ast.Attribute) and one.attr == attribute
            if named and not isinstance(getattr(one, "ctx", None), ast.Load):
                scope = source.scope(one)
                yield scope if isinstance(scope, Function) else None
            elif isinstance(one, ast.Call) and getattr(one.func, "id", "") in ("setattr", "vars"):
                yield None


def _annotated(owner: ast.ClassDef, attribute: str) -> bool:
    """`steps: int = 1000` in the class."""
    return any(
        isinstance(one, ast.AnnAssign)
        and isinstance(one.target, ast.Name)
        and one.target.id == attribute
        and isinstance(one.annotation, ast.Name)
        and one.annotation.id in _PLAIN
        for one in owner.body
    )


def _given_plain(maker: Function, attribute: str) -> bool:
    """`self.steps = steps`, where the parameter is said or seen by its default to be plain, or a constant."""
    values = [
        value
        for one in ast.walk(maker)
        if isinstance(one, ast.Assign)
        for target in one.targets
        for value in _values(target, one.value, attribute)
    ]
    return bool(values) and all(_plain(maker, one) for one in values)


def _values(target: ast.expr, value: ast.expr, attribute: str) -> list[ast.expr]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = zip(target.elts, value.elts, strict=False)
        return [one for left, right in pairs for one in _values(left, right, attribute)]
    return [value] if isinstance(target, ast.Attribute) and target.attr == attribute else []


def _plain(maker: Function, value: ast.expr) -> bool:
    if _is_setting(value):
        return True
    if not isinstance(value, ast.Name):
        return False
    arguments = [*maker.args.posonlyargs, *maker.args.args, *maker.args.kwonlyargs]
    given = next((one for one in arguments if one.arg == value.id), None)
    said = given.annotation if given is not None else None
    return (isinstance(said, ast.Name) and said.id in _PLAIN) or _is_setting(_default(maker, value.id))


def _is_setting(node: ast.expr | None) -> bool:
    """A number or a text; what is None at first may become anything."""
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float | str)


def _default(maker: Function, name: str) -> ast.expr | None:
    plain = [*maker.args.posonlyargs, *maker.args.args]
    pairs = list(zip(reversed(plain), reversed(maker.args.defaults), strict=False))
    pairs += [
        (one, value)
        for one, value in zip(maker.args.kwonlyargs, maker.args.kw_defaults, strict=True)
        if value
    ]
    return next((value for one, value in pairs if one.arg == name), None)
