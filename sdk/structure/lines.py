"""What the source says about a line: without gradients, random, always the same, which library call."""

from __future__ import annotations

import ast
import re

from . import apis
from .names import parameters
from .reader import Reader
from .source import Definition, Function, Loop, Source, blocks, heads, read

_BUILDERS = re.compile(
    r"(torch|numpy|math|\?)\.(arange|cos|diag|exp|eye|full|hanning|linspace|log|logspace|meshgrid|ones|outer|pow|sin"
    r"|sqrt|tensor|zeros|tri[lu](_indices)?)"
)
"""Functions that create or map an array."""
_TAKES_OVER = frozenset(("torch.from_numpy", "torch.as_tensor", "torch.tensor", "?.append", "?.extend"))
"""Functions that take an array over, and keep it."""
_SIZES = frozenset(("size", "shape", "ndim", "dtype", "device", "numel", "dim"))


def _is_numpy(api: str) -> bool:
    return api.startswith(("numpy.", "builtins.")) or api in _TAKES_OVER


class Lines:
    """Answers about lines of the user's files."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._no_grad: dict[str, list[tuple[int, int]]] = {}

    def library_call(self, file: str, line: int) -> str:
        """The library function with a job that the line itself calls; empty if there is none, or if the line
        has other statements, whose time it may be."""
        source = read(file)
        node = source.statement_at(line) if source else None
        if source is None or node is None or len(source.sharing(node)) > 1:
            return ""
        calls = [one for one in heads(node) if isinstance(one, ast.Call) and _covers(one, line)]
        found = [self._api(source, one) for one in calls]
        return next((api for job in apis.ORDER for api in found if apis.job(api) == job), "")

    def derives(self, file: str, line: int) -> bool:
        """Whether the line takes gradients itself: what it takes is a backward pass of its own."""
        source = read(file)
        node = source.statement_at(line) if source else None
        calls = [one for one in heads(node) if isinstance(one, ast.Call)] if node is not None else []
        return source is not None and any(apis.derives(self._api(source, one)) for one in calls)

    def in_numpy(self, file: str, line: int) -> bool:
        """Whether the line computes with NumPy, and with nothing of torch but what takes an array over: no
        gradient is recorded there."""
        source = read(file)
        node = source.statement_at(line) if source else None
        if source is None or node is None:
            return False
        names = self._reader.names(source)
        called = [one for one in heads(node) if isinstance(one, ast.Call)]
        found = {names.resolve(one.func, source.scope(one)).api for one in called}
        return any(one.startswith("numpy.") for one in found) and all(map(_is_numpy, found))

    def _api(self, source: Source, call: ast.Call) -> str:
        names = self._reader.names(source)
        api = names.resolve(call.func, source.scope(call)).api
        return "" if api.startswith("?.") and api.rpartition(".")[2] in names.methods else api

    def without_gradients(self, file: str, line: int) -> bool:
        """Whether the line is in a `with torch.no_grad()` block or a function decorated with it."""
        source = read(file)
        if source is None:
            return False
        if file not in self._no_grad:
            self._no_grad[file] = self._no_grad_ranges(source)
        return any(first <= line <= last for first, last in self._no_grad[file])

    def _no_grad_ranges(self, source: Source) -> list[tuple[int, int]]:
        found = []
        for node in source.parents:
            marks = [
                item.context_expr for item in getattr(node, "items", []) if isinstance(item, ast.withitem)
            ]
            marks += node.decorator_list if isinstance(node, Definition) else []
            if any(self._stops(source, mark) for mark in marks) and isinstance(node, ast.stmt):
                found.append((node.lineno, node.end_lineno or node.lineno))
        return found

    def _stops(self, source: Source, mark: ast.expr) -> bool:
        api = self._reader.names(source).resolve(mark, source.scope(mark)).api
        off = isinstance(mark, ast.Call) and [one.value for one in mark.args if isinstance(one, ast.Constant)]
        return apis.stops_gradients(api) or (api == "torch.set_grad_enabled()" and off == [False])

    def fixed(self, file: str, line: int) -> bool:
        """Whether the line creates an array that is the same in every step: in a `forward`, from nothing but
        sizes; in a loop, from nothing the loop binds or changes."""
        source = read(file)
        node = source.statement_at(line) if source else None
        if source is None or node is None or len(source.sharing(node)) > 1:
            return False
        function = next((one for one in reversed(source.around(line)) if one.name == "forward"), None)
        if isinstance(function, Function):
            return _Fixed(self, source, function).line(line)
        return isinstance(node, ast.Assign) and self._stays(source, node)

    def _stays(self, source: Source, node: ast.Assign) -> bool:
        loops = source.loops(node)
        effect = self._reader.effect(source, source.scope(node), node)
        own = set().union(*(_names(one) for one in ast.walk(node.value) if isinstance(one, ast.Call)))
        if not loops or not self.makes_array(source, node.value) or any(map(apis.draws, effect.apis)):
            return False
        inside = set(ast.walk(loops[0]))
        others = [one for one in self._reader.effects(source, effect.scope) if one.node in inside]
        moving = set().union(*(one.writes | one.maybe for one in others if one.node is not node))
        moving |= self._reader.effect(source, effect.scope, loops[0]).binds
        return bool(own) and not effect.reads & moving and not effect.binds & self._reader.objects(moving)

    def is_head(self, file: str, line: int) -> bool:
        """Whether the line requests the next batch: the head of a loop, or a call to `next`."""
        source = read(file)
        node = source.statement_at(line) if source else None
        if source is None or node is None:
            return False
        if isinstance(node, Loop):
            return True
        calls = [one for one in heads(node) if isinstance(one, ast.Call)]
        return any(self._api(source, one) == "builtins.next" for one in calls)

    def repeated(self, file: str, line: int) -> int:
        """The only line in the body of the loop that begins here; 0 if there is no such line."""
        source = read(file)
        node = source.statement_at(line) if source else None
        if not isinstance(node, Loop) or len(node.body) != 1 or list(blocks(node.body[0])):
            return 0
        return node.body[0].lineno

    def removable(self, file: str, line: int) -> bool:
        """Whether the line is a standalone call that can be removed: its result is unused, and its block has
        other statements."""
        source = read(file)
        node = source.statement_at(line) if source else None
        if source is None or not isinstance(node, ast.Expr) or node.end_lineno != node.lineno:
            return False
        block = next(one for one in blocks(source.parents[node]) if node in one)
        return len(block) > 1 and source.begins_line(node) and source.ends_line(node)

    def makes_array(self, source: Source, value: ast.expr) -> bool:
        """Whether an expression calls a function that creates or maps an array."""
        calls = [one for one in ast.walk(value) if isinstance(one, ast.Call)]
        return any(_BUILDERS.fullmatch(self._api(source, one).replace("()", "")) for one in calls)

    def draws(self, source: Source, call: ast.Call) -> bool:
        return apis.draws(self._api(source, call))


class _Fixed:
    """Walks through a `forward`, tracking which names vary from step to step and which do not."""

    def __init__(self, lines: Lines, source: Source, function: Function) -> None:
        self._lines, self._source, self._function = lines, source, function
        self._own, *rest = [*parameters(function), ""]
        self._moving = set(rest)
        self._fixed: set[str] = set()

    def line(self, line: int) -> bool:
        for statement in self._function.body:
            value = getattr(statement, "value", None)
            if not isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign) or value is None:
                continue
            still = self._still(value)
            made = still and (
                self._lines.makes_array(self._source, value) or bool(_names(value) & self._fixed)
            )
            if made and _covers(statement, line):
                return True
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if made or not still:
                (self._fixed if made else self._moving).update(*(_names(one) for one in targets))
        return False

    def _still(self, node: ast.AST) -> bool:
        """Whether nothing in it varies between steps: no input but its sizes, no module, nothing drawn."""
        if isinstance(node, ast.Attribute) and node.attr in _SIZES:
            return True
        if isinstance(node, ast.Name):
            return node.id not in self._moving
        if isinstance(node, ast.Call) and (self._of_self(node.func) or self._lines.draws(self._source, node)):
            return False
        return all(self._still(child) for child in ast.iter_child_nodes(node))

    def _of_self(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id == self._own


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _covers(node: ast.stmt | ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)
