"""What is done once per epoch, outside the loop over the steps, and what a loop keeps from every step."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from . import apis
from .effects import Effect
from .flow import Flow
from .loops import step_loop
from .reaching import definitions
from .reader import Reader
from .source import Loop, Source, read

_PLAIN = frozenset(("item", "detach", "tolist", "numpy", "float", "int", "str", "len", "format", "round"))
"""Calls whose result carries no graph."""
_COUNTING = frozenset(f"builtins.{name}" for name in ("range", "len", "enumerate", "zip", "reversed"))


Line = tuple[str, int]
"""A file and a line number."""


def beside_the_steps(reader: Reader, path: Sequence[tuple[str, int]]) -> list[Line]:
    """Lines that run once per iteration of the loop around the loop over the steps; first those that produce
    what the steps iterate over. `path` is the call stack of a line in the step, innermost first: the outer
    loop may be in a caller."""
    loops: list[tuple[Source, ast.stmt, Loop]] = []
    for file, line in path:
        source = read(file)
        node = source.statement_at(line) if source else None
        if source is not None and node is not None:
            loops += [(source, node, one) for one in source.loops(node)]
    if len(loops) < 2:
        return []
    (_, _, steps), (source, node, epochs) = loops[0], loops[1]
    beside = [one for one in epochs.body if not one.lineno <= node.lineno <= (one.end_lineno or one.lineno)]
    if isinstance(steps, ast.For) and steps in ast.walk(epochs) and _makes(reader, source, steps):
        beside.append(steps)
    worth = [one for one in beside if _calls(reader, source, one)]
    feeds = _feeding(reader, source, steps if steps in ast.walk(epochs) else node)
    return [
        (source.file, one.lineno) for one in sorted(worth, key=lambda one: (one not in feeds, one.lineno))
    ]


def _makes(reader: Reader, source: Source, steps: ast.For) -> bool:
    """Whether something is made for the loop to iterate over: counting takes no time."""
    names, scope = reader.names(source), source.scope(steps)
    called = [one.func for one in ast.walk(steps.iter) if isinstance(one, ast.Call)]
    return any(names.resolve(one, scope).api not in _COUNTING for one in called)


def _calls(reader: Reader, source: Source, node: ast.stmt) -> bool:
    """Whether it calls something other than to log it."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        api = reader.names(source).resolve(node.value.func, source.scope(node)).api
        return apis.job(api) != "log"
    return any(isinstance(one, ast.Call) for one in ast.walk(node))


def _feeding(reader: Reader, source: Source, node: ast.stmt) -> set[ast.stmt]:
    """The statement itself, and those that bind what it reads."""
    return {node} | reader.bound_above(reader.effect(source, source.scope(node), node))


def kept(flow: Flow, source: Source, line: int) -> list[Line]:
    """Lines of the loop around a `backward()` that keep a value from every step along with its graph."""
    node = source.statement_at(line)
    scope = source.scope_at(line)
    if node is None:
        return []
    effects = flow.reader.effects(source, scope)
    graph = _graph(flow.reader, source, effects, node)
    return [
        (source.file, one.node.lineno)
        for one in effects
        if step_loop(flow, one) is not None and _keeps(one, graph, flow.reader, source)
    ]


def _graph(reader: Reader, source: Source, effects: list[Effect], backward: ast.stmt) -> set[str]:
    """Names whose values are part of the graph `backward()` traverses, followed call by call."""
    found: set[str] = set()
    todo = [name for one in ast.walk(backward) if isinstance(one, ast.Call) for name in _receiver(one)]
    made = {
        name: one.node.value
        for one in effects
        if isinstance(one.node, ast.Assign)
        for target in one.node.targets
        for name in _stored(target)
    }
    while todo:
        name = todo.pop()
        if name in made and name not in found:
            found.add(name)
            todo += sorted(_carrying(made[name]))
    return found


def _receiver(call: ast.Call) -> list[str]:
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr in ("backward", "manual_backward"):
        return [one.id for one in ast.walk(call) if isinstance(one, ast.Name)]
    return []


def _stored(target: ast.expr) -> list[str]:
    return [one.id for one in ast.walk(target) if isinstance(one, ast.Name)]


def _carrying(node: ast.AST) -> set[str]:
    """Names an expression reads in a way that keeps their graph."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Call):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in _PLAIN:
            return set()
        inside = [function.value] if isinstance(function, ast.Attribute) else []
        return set().union(*(_carrying(one) for one in (*inside, *node.args)))
    return set().union(*(_carrying(one) for one in ast.iter_child_nodes(node)))


def _keeps(effect: Effect, graph: set[str], reader: Reader, source: Source) -> bool:
    """Whether it puts a value with its graph into something that outlives the step."""
    node = effect.node
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
    ):
        put = node.value.func.attr in ("append", "extend", "appendleft", "add")
        return put and bool(set().union(*map(_carrying, node.value.args)) & graph)
    if not isinstance(node, ast.Assign | ast.AugAssign) or not effect.binds & effect.reads:
        return False
    targets = set(_stored(node.target if isinstance(node, ast.AugAssign) else node.targets[0]))
    others = _carrying(node.value) & graph - targets
    return bool(others) and not _starts_anew(effect, reader, source)


def _starts_anew(effect: Effect, reader: Reader, source: Source) -> bool:
    """Whether what it adds to is rebound before it in every iteration: a sum within the step."""
    place = next(iter(effect.binds & effect.reads))
    binds = definitions(source, effect.node, reader.binder(effect, place))
    loop = source.loops(effect.node)[0]
    inside = set(ast.walk(loop))
    return all(one in inside and one is not effect.node for one in binds)
