"""A user file as a syntax tree: its functions and classes, the statement and scope of a line."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator

from .files import is_user_file

MOST_LINES = 20_000
"""Chosen: longer files are not parsed."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
Loop = ast.For | ast.AsyncFor | ast.While
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Import, ast.ImportFrom)
"""Most statements: they contain no others."""
_sources: dict[str, Source | None] = {}


class Source:
    """One parsed file."""

    def __init__(self, file: str, tree: ast.Module) -> None:
        self.file = file
        self.tree = tree
        self.parents: dict[ast.AST, ast.AST] = {}
        self.names: dict[Definition, str] = {}
        """Definitions and their qualified names: "Trainer.fit"."""
        self._statements: dict[Scope, list[ast.stmt]] = {}
        self._index(tree, "")
        self.definitions = {name: node for node, name in self.names.items()}

    def _index(self, node: ast.AST, prefix: str) -> None:
        for child in children(node):
            self.parents[child] = node
            inner = prefix
            if isinstance(child, Definition):
                self.names[child] = prefix + child.name
                inner = f"{prefix}{child.name}."
            self._index(child, inner)

    def outward(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def scope(self, node: ast.AST) -> Scope:
        """The function a node is in, else the module. A lambda or comprehension is not a scope."""
        return next((one for one in self.outward(node) if isinstance(one, Scope)), self.tree)

    def owner(self, scope: Scope) -> ast.ClassDef | None:
        """The class a method is in."""
        parent = self.parents.get(scope)
        return parent if isinstance(parent, ast.ClassDef) else None

    def around(self, line: int) -> list[Definition]:
        """The classes and functions around a line, outermost first."""
        found = [node for node in self.names if node.lineno <= line <= (node.end_lineno or node.lineno)]
        return sorted(found, key=lambda node: node.lineno)

    def scope_at(self, line: int) -> Scope:
        inside = [node for node in self.around(line) if isinstance(node, Function)]
        return inside[-1] if inside else self.tree

    def statements(self, scope: Scope) -> list[ast.stmt]:
        """The statements of a scope in file order, compound ones before their contents; excluding those of
        functions and classes defined there."""
        if scope not in self._statements:
            self._statements[scope] = list(_within(scope.body))
        return self._statements[scope]

    def statement_at(self, line: int) -> ast.stmt | None:
        """The innermost statement at a line; for the head of a loop or `if`, that loop or `if`."""
        found = None
        for one in self.statements(self.scope_at(line)):
            if one.lineno <= line <= (one.end_lineno or one.lineno):
                found = one
        return found

    def sharing(self, node: ast.stmt) -> list[ast.stmt]:
        """The statements on a statement's line, itself included: "x = f(y); g(x)" are two. Times are known by
        line, so they are of all of these."""
        for block in blocks(self.parents[node]):
            if node in block:
                return [one for one in block if one.lineno == node.lineno]
        return [node]

    def loops(self, node: ast.AST) -> list[Loop]:
        """The loops around a node within its scope, innermost first."""
        found: list[Loop] = []
        for one in self.outward(node):
            if isinstance(one, Scope):
                break
            if isinstance(one, Loop):
                found.append(one)
        return found

    def text_between(self, first: int, last: int) -> list[str]:
        """Lines as they are in the file."""
        return [line.rstrip("\n") for line in linecache.getlines(self.file)[first - 1 : last]]

    def begins_line(self, node: ast.stmt) -> bool:
        """Whether only whitespace precedes a statement on its line."""
        line = self.text_between(node.lineno, node.lineno)
        return bool(line) and not line[0].encode()[: node.col_offset].strip()

    def ends_line(self, node: ast.stmt) -> bool:
        """Whether only a comment follows a statement on its last line."""
        last = node.end_lineno or node.lineno
        line = self.text_between(last, last)
        rest = line[0].encode()[node.end_col_offset or 0 :].strip() if line else b";"
        return not rest or rest.startswith(b"#")


def children(node: ast.AST) -> list[ast.AST]:
    """Like `ast.iter_child_nodes`, but faster and without `Load` and `Store`."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name)
        if isinstance(value, list):
            found += [one for one in value if isinstance(one, ast.AST)]
        elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            found.append(value)
    return found


def _within(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for one in body:
        yield one
        if not isinstance(one, Definition):
            for inner in blocks(one):
                yield from _within(inner)


def blocks(node: ast.AST) -> list[list[ast.stmt]]:
    """The bodies of a compound statement."""
    if isinstance(node, _SIMPLE):
        return []
    found = [getattr(node, part, []) for part in ("body", "orelse", "finalbody")]
    found += [one.body for one in getattr(node, "handlers", [])]
    found += [one.body for one in getattr(node, "cases", [])]
    return [one for one in found if isinstance(one, list) and one]


def heads(node: ast.stmt) -> list[ast.AST]:
    """The nodes of a statement, excluding those of nested statements."""
    inner = {id(one) for block in blocks(node) for statement in block for one in ast.walk(statement)}
    return [one for one in ast.walk(node) if id(one) not in inner]


def read(file: str) -> Source | None:
    """A parsed user file, kept until `forget`; None if there is no source to read."""
    if file not in _sources:
        _sources[file] = _parse(file) if is_user_file(file) else None
    return _sources[file]


def known() -> list[Source]:
    """The files read so far, and the script itself: who calls a function is in one of them."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script:
        read(script)
    return [one for one in _sources.values() if one is not None]


def _parse(file: str) -> Source | None:
    lines = linecache.getlines(file)
    if not 0 < len(lines) <= MOST_LINES:
        return None
    try:
        return Source(file, ast.parse("".join(lines)))
    except (SyntaxError, ValueError, RecursionError):
        return None


def forget() -> None:
    """Free the syntax trees, which are large; call this when done with them."""
    _sources.clear()


def qualified(file: str, line: int, name: str) -> str:
    """A function's name prefixed by the classes and functions around it, if the source is available."""
    source = read(file)
    names = [node.name for node in source.around(line)] if source else []
    if name in names:
        return ".".join(names[: len(names) - names[::-1].index(name)])
    return ".".join([*names, name])
