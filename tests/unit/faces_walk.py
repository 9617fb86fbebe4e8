"""Walks the syntax trees of a face (TUI, page, commands …) and reports what a face must leave to the layers
below it: thresholds, arithmetic on readings, joins between runs, GPUs and processes, number formats, and
decisions based on the words of our own sentences.

A *reading* is a numeric field of a snapshot's structs (or of a past run, a comparison, the ledger), a local
name bound to one, or a parameter annotated `float`: widths and heights are ints. An *identity* is a field
that names a run, a rank, a GPU or a process. The walk goes by names, not by types: it does not see a reading
that went through a container, and it ignores the fields in `SHARED_WITH_LAYOUT`.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, get_args, get_type_hints

import msgspec

ROOT = Path(__file__).parents[2]
MODULES = (
    "monitor.model.finding", "monitor.model.gpu", "monitor.model.history", "monitor.model.host",
    "monitor.model.run", "monitor.model.snapshot", "monitor.catalog.rows", "monitor.comparison.compare_runs",
    "monitor.comparison.realised", "monitor.store.ledger", "monitor.traces.report", "monitor.model.account",
    "monitor.model.nodes", "monitor.model.post_mortem", "monitor.model.since_start", "monitor.model.wall",
)  # fmt: skip
SHARED_WITH_LAYOUT = {"width", "start", "end", "index", "step", "count", "min", "max"}
"""Names of numeric fields that code about lines, columns and lists also uses."""
IDENTITIES = {
    "id", "run", "uuid", "gpu", "gpu_uuid", "gpu_uuids", "visible_gpu_uuids", "mig_uuid", "pid", "pids",
    "parent", "run_ids",
}  # fmt: skip
ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
SAME = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
REDUCE = {"min", "max", "sum", "round", "abs"}
LOOKUPS = {"get", "pop", "setdefault", "isdisjoint", "intersection"}
TEXTS = {"detail", "error", "headline", "hint", "message", "sentence", "state_detail", "summary", "title"}
"""Fields that contain sentences for people."""
WORDS = {"startswith", "endswith", "find", "index", "split", "partition"}
NUMBER_FORMAT = re.compile(r"[,%]|\.\d|[efgnEFG]$")


class Found(NamedTuple):
    where: str
    """File and function: "views/gpu.py:graphs"."""
    line: int
    what: str


def structs(module: ModuleType) -> list[type[msgspec.Struct]]:
    found = [one for _, one in inspect.getmembers(module, inspect.isclass)]
    return [one for one in found if issubclass(one, msgspec.Struct) and one.__module__ == module.__name__]


def readings() -> set[str]:
    """Names of the numeric fields of all structs a face may show."""
    hints = [get_type_hints(struct) for name in MODULES for struct in structs(import_module(name))]
    fields = [field for struct in hints for field in struct.items()]
    numeric = {name for name, kind in fields if {kind, *get_args(kind)} & {int, float}}
    return numeric - SHARED_WITH_LAYOUT - IDENTITIES


def walk(face: Path) -> list[Found]:
    """Everything in a face's files that belongs below it, in file order."""
    known, base = readings(), face if face.is_dir() else face.parent
    paths = sorted(face.rglob("*.py")) if face.is_dir() else [face]
    return [found for path in paths for found in _File(path.relative_to(base).as_posix(), known).read(path)]


class _File:
    def __init__(self, name: str, known: set[str]) -> None:
        self._name, self._known = name, known

    def read(self, path: Path) -> Iterator[Found]:
        yield from self._scope(ast.parse(path.read_text(encoding="utf-8")), "", set())

    def _scope(self, node: ast.AST, function: str, bound: set[str]) -> Iterator[Found]:
        for child in ast.iter_child_nodes(node):
            what = self._judge(child, bound)
            if what:
                yield Found(f"{self._name}:{function}", getattr(child, "lineno", 0), what)
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = f"{function}.{child.name}".lstrip(".")
                yield from self._scope(child, inner, bound | self._bound(child))
            elif isinstance(child, ast.ClassDef):
                yield from self._scope(child, f"{function}.{child.name}".lstrip("."), bound)
            else:
                yield from self._scope(child, function, bound)

    def _bound(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
        """Names inside a function that are readings."""
        arguments = (*function.args.args, *function.args.kwonlyargs)
        names = {one.arg for one in arguments if one.annotation and _is_float(one.annotation)}
        for node in ast.walk(function):
            for target, value in _bindings(node):
                if isinstance(target, ast.Name) and self._reading(value, names):
                    names.add(target.id)
        return names

    def _reading(self, node: ast.AST, bound: set[str]) -> bool:
        match node:
            case ast.Attribute():
                return node.attr in self._known
            case ast.Name():
                return node.id in bound
            case ast.BoolOp():
                return any(self._reading(value, bound) for value in node.values)
            case ast.IfExp():
                return self._reading(node.body, bound) or self._reading(node.orelse, bound)
            case ast.UnaryOp() | ast.Starred():
                return self._reading(node.operand if isinstance(node, ast.UnaryOp) else node.value, bound)
            case ast.Call(func=ast.Name(id="float" | "int")):
                return any(self._reading(one, bound) for one in node.args)
            case ast.GeneratorExp() | ast.ListComp():
                return self._reading(node.elt, bound)
        return False

    def _judge(self, node: ast.AST, bound: set[str]) -> str:
        match node:
            case ast.Compare():
                return self._compare(node, bound)
            case ast.BinOp(left=left, right=right) | ast.AugAssign(target=left, value=right):
                return "arithmetic" if self._reading(left, bound) or self._reading(right, bound) else ""
            case ast.Call(func=ast.Name(id=name), args=args) if name in REDUCE:
                return "arithmetic" if any(self._reading(one, bound) for one in args) else ""
            case ast.Call(func=ast.Attribute(attr=name, value=ast.Attribute(attr=text))) if name in WORDS:
                return "prose" if text in TEXTS else ""
            case ast.Call(func=ast.Attribute(attr=name), args=args) if name in LOOKUPS:
                return "join" if any(_identities(one) for one in args[:1]) else ""
            case ast.DictComp(key=key):
                return "join" if _identities(key) else ""
            case ast.Subscript(slice=key):
                return "join" if _identities(key) else ""
            case ast.FormattedValue(format_spec=ast.JoinedStr() as spec):
                return "number format" if formats_a_number(spec) else ""
        return ""

    def _compare(self, node: ast.Compare, bound: set[str]) -> str:
        sides = [node.left, *node.comparators]
        if any(isinstance(op, ORDER) for op in node.ops):
            real = any(isinstance(side, ast.Constant) and isinstance(side.value, float) for side in sides)
            return "threshold" if real or any(self._reading(side, bound) for side in sides) else ""
        if any(isinstance(op, SAME) for op in node.ops):
            if _reads_words(sides):
                return "prose"
            return "join" if sum(_identities(side) for side in sides) > 1 else ""
        return ""


def formats_a_number(spec: ast.JoinedStr) -> bool:
    text = "".join(str(part.value) for part in spec.values if isinstance(part, ast.Constant))
    return bool(NUMBER_FORMAT.search(text))


def _reads_words(sides: list[ast.expr]) -> bool:
    literal = any(
        isinstance(side, ast.Constant) and side.value and isinstance(side.value, str) for side in sides
    )
    return literal and any(isinstance(side, ast.Attribute) and side.attr in TEXTS for side in sides)


def _is_float(annotation: ast.expr) -> bool:
    return "float" in ast.unparse(annotation).split(" | ")


def _identities(node: ast.AST) -> bool:
    """Whether it is an identity, or a tuple that contains one."""
    if isinstance(node, ast.Tuple):
        return any(_identities(one) for one in node.elts)
    return isinstance(node, ast.Attribute) and node.attr in IDENTITIES


def _bindings(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """(name, what it is bound to), for assignments and for loops over literal tuples."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            yield from zip(names, values, strict=False)
        case ast.Assign(targets=[target], value=value):
            yield target, value
        case ast.For(target=target, iter=ast.Tuple(elts=values)):
            yield from ((target, value) for value in values)
        case ast.comprehension(target=target, iter=ast.Tuple(elts=values)):
            yield from ((target, value) for value in values)


def unexpected(face: Path, allowed: dict[str, str]) -> list[str]:
    """What the face does that no entry of `allowed` ("file:function" → reason) covers, and entries that no
    longer cover anything."""
    found = walk(face)
    wrong = [f"{one.where} line {one.line}: {one.what}" for one in found if one.where not in allowed]
    stale = sorted(set(allowed) - {one.where for one in found})
    return wrong + [f"{where}: allowed but not there" for where in stale]
