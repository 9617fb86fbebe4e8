"""The loop over the steps: its counter, and whether work in it could be done only every n-th step."""

from __future__ import annotations

import ast
from math import lcm
from typing import NamedTuple

from .effects import Effect
from .flow import Flow
from .reader import Reader
from .source import Loop, Scope, Source

MOST_LINES = 12
"""Chosen: a longer piece of code is described, not shown."""


class Counter(NamedTuple):
    """A name that counts the iterations of a loop."""

    name: str
    from_zero: bool
    """Whether it is 0 in the first iteration, at the statement in question."""


class Guard(NamedTuple):
    """Lines that can be put under `if counter % n == 0:`."""

    line: int
    lines: list[str]
    """As they are in the file."""
    counter: str
    within: int = 1
    """They already run only where some counter is a multiple of this."""


def step_loop(flow: Flow, effect: Effect) -> Loop | None:
    """The innermost loop around a statement, if each of its iterations is a step."""
    loops = effect.source.loops(effect.node)
    if not loops:
        return None
    if loops[0] not in flow.step_loops:
        flow.step_loops[loops[0]] = _is_step_loop(flow, effect, loops[0])
    return loops[0] if flow.step_loops[loops[0]] else None


def _is_step_loop(flow: Flow, effect: Effect, loop: Loop) -> bool:
    inside = [one for one in flow.reader.effects(effect.source, effect.scope) if _directly_in(one, loop)]
    if any(one.update for one in inside):
        return True
    called = [(source, function) for one in inside for _, source, function in one.leads]
    return any(not _loops_itself(flow.reader, source, function) for source, function in called)


def _directly_in(effect: Effect, loop: Loop) -> bool:
    loops = effect.source.loops(effect.node)
    return bool(loops) and loops[0] is loop


def _loops_itself(reader: Reader, source: Source, scope: Scope) -> bool:
    """Whether the update is in a loop of that function: a call to it is an epoch, not a step."""
    return any((one.update or one.leads) and source.loops(one.node) for one in reader.effects(source, scope))


def counter(reader: Reader, effect: Effect, loop: Loop) -> Counter | None:
    """What counts the iterations of a loop, seen from a statement in it."""
    own = _head_counter(reader, effect, loop) if isinstance(loop, ast.For) else None
    return own or _kept_counter(reader, effect, loop)


def _head_counter(reader: Reader, effect: Effect, loop: ast.For) -> Counter | None:
    """`for step in range(n)`, `for step, batch in enumerate(loader)`, also inside a progress bar."""
    names, source = reader.names(effect.source), effect.source
    call = loop.iter
    while (
        isinstance(call, ast.Call)
        and names.resolve(call.func, effect.scope).api.startswith("tqdm.")
        and call.args
    ):
        call = call.args[0]
    if not isinstance(call, ast.Call):
        return None
    api = names.resolve(call.func, source.scope(loop)).api
    if api == "builtins.range" and len(call.args) > 2 and not _is_constant(call.args[2], 1):
        return None  # it counts in strides, so that a remainder does not tell the iterations
    target = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) and loop.target.elts else loop.target
    if not isinstance(target, ast.Name) or api not in (
        "builtins.range",
        "builtins.enumerate",
        "itertools.count",
    ):
        return None
    begin = {"builtins.range": call.args[:-1][:1], "builtins.enumerate": call.args[1:2]}.get(
        api, call.args[:1]
    )
    begin = begin or [one.value for one in call.keywords if one.arg == "start"]
    return Counter(target.id, not begin or _is_constant(begin[0], 0))


def _kept_counter(reader: Reader, effect: Effect, loop: Loop) -> Counter | None:
    """`step += 1` in every iteration, and `step = 0` before the loop."""
    for one in loop.body:
        if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add) and _is_constant(one.value, 1):
            name = one.target.id if isinstance(one.target, ast.Name) else ""
            values = reader.names(effect.source).bindings(effect.scope).get(name, [])
            begins = [value for value in values if value is not None]
            if len(values) == 2 and len(begins) == 1 and _is_constant(begins[0], 0):
                return Counter(name, effect.node.lineno < one.lineno)
    return None


def _is_constant(node: ast.expr, value: int) -> bool:
    return isinstance(node, ast.Constant) and node.value == value and not isinstance(node.value, bool)


def guard(flow: Flow, nodes: list[ast.stmt], effect: Effect) -> Guard | None:
    """How statements of one block could be put under `if counter % n == 0:` so that everything still runs;
    None if they could not. Whether a step needs them is not checked here."""
    loop = step_loop(flow, effect)
    counted = counter(flow.reader, effect, loop) if loop is not None else None
    if counted is None or loop is None:
        return None
    lines = _lines(effect.source, nodes)
    inside = [one for node in nodes for one in ast.walk(node)]
    if not lines or any(isinstance(one, ast.Yield | ast.YieldFrom | ast.Await) for one in inside):
        return None
    stored = {one.id for one in inside if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    if counted.name in stored or not _runs_first(effect, loop, counted, stored, nodes):
        return None
    within = _within_multiples(_tests(effect, loop))
    return Guard(nodes[0].lineno, lines, counted.name, within) if within else None


def _within_multiples(tests: list[ast.expr]) -> int:
    """Of what a counter is a multiple where all these tests hold; 0 if that is computed."""
    found = 1
    for one in (node for test in tests for node in ast.walk(test)):
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mod):
            number = one.right.value if isinstance(one.right, ast.Constant) else 0
            found = lcm(found, number) if isinstance(number, int) else 0
    return found


def _lines(source: Source, nodes: list[ast.stmt]) -> list[str]:
    """The text from the first to the last statement, if it is theirs alone and can be indented."""
    lines = source.text_between(nodes[0].lineno, nodes[-1].end_lineno or nodes[-1].lineno)
    own = source.begins_line(nodes[0]) and source.ends_line(nodes[-1])
    strings = (
        one for node in nodes for one in ast.walk(node) if isinstance(one, ast.Constant | ast.JoinedStr)
    )
    broken = any(one.end_lineno != one.lineno for one in strings)
    tabs = any("\t" in line for line in lines)
    return lines if own and not broken and not tabs and len(lines) <= MOST_LINES else []


def _runs_first(
    effect: Effect, loop: Loop, counted: Counter, stored: set[str], nodes: list[ast.stmt]
) -> bool:
    """Whether names bound in the statements and read elsewhere are still bound in the first iteration."""
    inside = {one for node in nodes for one in ast.walk(node)}
    read = {
        one.id
        for one in ast.walk(effect.scope)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and one not in inside
    }
    if not stored & read:
        return True
    return counted.from_zero and all(_true_at_zero(test, counted.name) for test in _tests(effect, loop))


def _tests(effect: Effect, loop: Loop) -> list[ast.expr]:
    """What decides in an iteration whether the statement runs."""
    around = effect.source.outward(effect.node)
    return [one.test for one in around if isinstance(one, ast.If) and _within(one, loop)]


def _within(node: ast.stmt, loop: Loop) -> bool:
    return loop.lineno < node.lineno <= (loop.end_lineno or loop.lineno)


def _true_at_zero(test: ast.expr, name: str) -> bool:
    """`step % n == 0`."""
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.BinOp)
        and isinstance(test.left.op, ast.Mod)
        and isinstance(test.left.left, ast.Name)
        and test.left.left.id == name
        and isinstance(test.ops[0], ast.Eq)
        and _is_constant(test.comparators[0], 0)
    )
