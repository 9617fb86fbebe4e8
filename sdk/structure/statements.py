"""The effect of one statement, found by walking its expressions and the functions it calls."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from . import apis
from .effects import RESULT, Effect, Summary, place_prefix
from .methods import changes_receiver, is_numeric, is_view, keeps_arguments, keeps_old_value, reads_only
from .names import NOTHING, Target, arguments, self_name, stored
from .source import Function, Source

if TYPE_CHECKING:
    from .reader import Reader

_WRAPPERS = frozenset(
    ("zip", "enumerate", "reversed", "list", "tuple", "iter", "next", "sorted", "map", "filter")
)


class Statement:
    """Fills in the effect of one statement; for a compound one, only of its head."""

    def __init__(self, reader: Reader, effect: Effect) -> None:
        self._reader = reader
        self._effect = effect
        self._source, self._scope = effect.source, effect.scope
        self._names = reader.names(effect.source)

    def read(self) -> None:
        node, effect = self._effect.node, self._effect
        effect.leaves = isinstance(node, ast.Return | ast.Break | ast.Continue | ast.Raise)
        for expression in _own_expressions(node):
            self.evaluate(expression, isinstance(node, ast.Expr))
        value = set(effect.reads)
        self._targets(node)
        if isinstance(node, ast.Assign | ast.AugAssign):
            effect.carries |= effect.writes & value
        if isinstance(node, ast.Return) and node.value is not None:
            effect.binds.add(f"{place_prefix(self._source, self._scope)}|{RESULT}")

    def _targets(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._target(target, node.value)
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            self._target(node.target, None)
        elif isinstance(node, ast.For | ast.AsyncFor):
            self._target(node.target, None)
            self._alias(node.target, self.roots(node.iter, loose=True))
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                if item.optional_vars is not None:
                    self._target(item.optional_vars, item.context_expr)

    def _target(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self._effect.binds.add(self._place(target.id))
            if value is not None:
                self._alias(target, self.roots(value))
        elif isinstance(target, ast.Tuple | ast.List):
            for one in target.elts:
                self._target(one, None)
        elif isinstance(target, ast.Starred):
            self._target(target.value, None)
        elif isinstance(target, ast.Attribute) and self._is_self(target.value):
            self._effect.binds.add(self._own(target.attr))
        elif isinstance(target, ast.Attribute | ast.Subscript):
            self._effect.update |= _gives_gradient(target, value)
            self._effect.changes |= self.roots(target.value)
            self.evaluate(target.value)
            if isinstance(target, ast.Subscript):
                self.evaluate(target.slice)

    def _alias(self, target: ast.expr, roots: set[str]) -> None:
        for name in stored(target):
            place = self._place(name)
            self._reader.aliases.setdefault(place, set()).update(roots - {place})

    def evaluate(self, node: ast.expr, dropped: bool = False) -> None:
        """What evaluating an expression does; `dropped`: its value is unused."""
        if isinstance(node, ast.Call):
            self._call(node, dropped)
        elif isinstance(node, ast.Name):
            self._read_name(node.id)
        elif isinstance(node, ast.Attribute):
            self._effect.gradients |= node.attr == "grad"
            if self._is_self(node.value):
                self._effect.reads.add(self._own(node.attr))
            else:
                self.evaluate(node.value)
        elif isinstance(node, ast.NamedExpr):
            self._effect.binds.add(self._place(node.target.id))
            self.evaluate(node.value)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.evaluate(child)
                elif isinstance(child, ast.comprehension):
                    self._comprehension(child)

    def _read_name(self, name: str) -> None:
        if self._names.is_variable(name, self._scope):
            self._effect.reads.add(self._place(name))

    def _comprehension(self, node: ast.comprehension) -> None:
        self.evaluate(node.iter)
        self._alias(node.target, self.roots(node.iter, loose=True))
        for test in node.ifs:
            self.evaluate(test)

    def _call(self, node: ast.Call, dropped: bool) -> None:
        for argument in (*node.args, *(one.value for one in node.keywords)):
            self.evaluate(argument)
        if isinstance(node.func, ast.Attribute) or not isinstance(node.func, ast.Name):
            self.evaluate(node.func)
        else:
            self._read_name(node.func.id)
        target = self._target_of(node)
        if isinstance(target.node, Function) and target.source is not None:
            self._own_call(node, target.source, target.node)
        else:
            self._library_call(node, target.api, dropped)

    def _target_of(self, node: ast.Call) -> Target:
        """What is called. Calling an instance of a user class means its `forward` or `__call__`."""
        target = self._names.resolve(node.func, self._scope)
        if isinstance(target.node, ast.ClassDef):
            wanted = ("forward", "__call__") if target.made else ("__init__",)
            names = self._reader.names(target.source) if target.source is not None else self._names
            methods = (names.method(target.node, name) for name in wanted)
            return next(filter(None, methods), NOTHING._replace(api="?.__init__"))
        if target.node is not None and target.made:
            return NOTHING
        own = target.api.startswith("?.") and target.api.rpartition(".")[2] in self._names.methods
        return NOTHING._replace(api="?.?") if own else target

    def _own_call(self, node: ast.Call, source: Source, function: Function) -> None:
        effect, summary = self._effect, self._reader.summary(source, function)
        receiver = (
            self.roots(node.func.value) if isinstance(node.func, ast.Attribute) else self.roots(node.func)
        )
        given = {name: self.roots(value) for name, value in arguments(node, source, function)}
        effect.reads |= {one for one in summary.reads if not one.startswith(summary.places)}
        effect.changes |= _outside(summary, summary.changes, given, receiver)
        effect.maybe |= _outside(summary, summary.maybe, given, receiver)
        effect.carries |= _outside(summary, summary.carries, given, receiver)
        effect.apis |= summary.apis
        effect.moves |= summary.moves
        effect.opaque |= summary.opaque
        effect.gradients |= summary.gradients
        if summary.update:
            effect.leads.append((node, source, function))

    def _library_call(self, node: ast.Call, api: str, dropped: bool) -> None:
        effect = self._effect
        effect.apis.add(api)
        name = api.rpartition(".")[2]
        given = set().union(
            *(self.roots(one) for one in (*node.args, *(each.value for each in node.keywords)))
        )
        effect.changes |= set().union(*(self.roots(one.value) for one in node.keywords if one.arg == "out"))
        moves = not dropped and self._moves(node, api)
        effect.moves |= moves
        effect.update |= apis.updates(api) and not moves
        effect.optimizes |= apis.makes_optimizer(api)
        effect.parameters |= apis.makes_parameter(api) or any(_asks_gradients(one) for one in node.keywords)
        receiver = self.roots(node.func.value) if isinstance(node.func, ast.Attribute) else set()
        if moves:
            effect.changes |= receiver
            return
        if apis.job(api) in apis.SINKS or apis.updates(api) or api.endswith("()"):
            return  # "()": it calls an object that a call returned: a module or a loss
        method = isinstance(node.func, ast.Attribute) and ("?" in api or "()" in api)
        if name.endswith("_") and not name.endswith("__"):
            changed = receiver if method else self.roots(node.args[0]) if node.args else set()
            effect.changes |= changed
            effect.carries |= changed if keeps_old_value(name) else set()
        elif method:
            self._method_call(name, receiver, given, dropped)
        elif not is_numeric(api) and not api.startswith(("builtins.", "?.__init__")):
            effect.maybe |= given
            effect.opaque |= dropped or api == "?.?"

    def _moves(self, node: ast.Call, api: str) -> bool:
        """`seen, reward = env.step(action)`, whose value is used: not an optimizer, which is given nothing, a
        function to call again, or is given to what scales its gradients."""
        given = [*node.args, *(one.value for one in node.keywords)]
        if not given or not apis.may_move(api):
            return False
        found = [self._names.resolve(one, self._scope) for one in given]
        return not any(
            isinstance(one, ast.Lambda) or isinstance(target.node, Function) or apis.optimizes(target.api)
            for one, target in zip(given, found, strict=True)
        )

    def _method_call(self, name: str, receiver: set[str], given: set[str], dropped: bool) -> None:
        effect = self._effect
        if name in ("train", "eval", "requires_grad"):  # module switches, restored by whoever set them
            return
        if changes_receiver(name, dropped):
            effect.changes |= receiver
            effect.maybe |= set() if keeps_arguments(name) else given
        elif not reads_only(name):
            effect.maybe |= receiver | given

    def roots(self, node: ast.expr, loose: bool = False) -> set[str]:
        """The places whose object an expression is, or is part of. `loose`: also through any method call."""
        if isinstance(node, ast.Name):
            return {self._place(node.id)}
        if isinstance(node, ast.Attribute):
            return {self._own(node.attr)} if self._is_self(node.value) else self.roots(node.value, loose)
        if isinstance(node, ast.Subscript | ast.Starred | ast.Await):
            return self.roots(node.value, loose)
        if isinstance(node, ast.Tuple | ast.List):
            return set().union(*(self.roots(one, loose) for one in node.elts))
        if isinstance(node, ast.Call):
            return self._roots_of_call(node, loose)
        return set()

    def _roots_of_call(self, node: ast.Call, loose: bool) -> set[str]:
        function = node.func
        if isinstance(function, ast.Attribute) and (loose or is_view(function.attr)):
            return self.roots(function.value, loose)
        if loose or (isinstance(function, ast.Name) and function.id in _WRAPPERS):
            return set().union(*(self.roots(one, loose) for one in node.args))
        return set()

    def places(self, target: ast.expr) -> set[str]:
        """The places of the names that a target binds."""
        return {self._place(name) for name in stored(target)}

    def _is_self(self, node: ast.expr) -> bool:
        owned = self._source.owner(self._scope) is not None
        return owned and isinstance(node, ast.Name) and node.id == self_name(self._scope)

    def _own(self, attribute: str) -> str:
        """An attribute of `self`: the same place in all methods of a class and of those derived from it."""
        owner = self._source.owner(self._scope)
        if owner is None:
            return f"{self._source.file}:.self|{attribute}"
        node, source = self._names.origin(owner)
        return f"{source.file}:{source.names[node]}.self|{attribute}"

    def _place(self, name: str) -> str:
        return self._names.place(name, self._scope)


def _outside(summary: Summary, places: set[str], given: dict[str, set[str]], receiver: set[str]) -> set[str]:
    """A function's places as its caller sees them: parameters become the arguments, `self` the receiver."""
    found = {one for one in places if not one.startswith(summary.places)}
    for name, roots in given.items():
        if f"{summary.places}{name}" in places:
            found |= roots
    if any(".self|" in one for one in places):
        found |= receiver
    return found


def _gives_gradient(target: ast.Attribute | ast.Subscript, value: ast.expr | None) -> bool:
    """`parameter.grad = …`: the optimizer takes it from there. None only clears it."""
    cleared = isinstance(value, ast.Constant) and value.value is None
    return isinstance(target, ast.Attribute) and target.attr == "grad" and not cleared


def _asks_gradients(keyword: ast.keyword) -> bool:
    on = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
    return keyword.arg == "requires_grad" and on


def _own_expressions(node: ast.stmt) -> list[ast.expr]:
    """The expressions a statement itself evaluates, excluding those of nested statements."""
    if isinstance(node, ast.With | ast.AsyncWith):
        return [item.context_expr for item in node.items]
    if isinstance(node, Function | ast.ClassDef):
        return []
    found = [getattr(node, part, None) for part in ("test", "iter", "subject", "value", "exc", "msg")]
    if isinstance(node, ast.AugAssign):
        found.append(node.target)
    return [one for one in found if isinstance(one, ast.expr)]
