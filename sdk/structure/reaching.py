"""Reaching definitions: which statements may have bound what a statement reads.

Blocks are walked backwards and outwards from the statement. An earlier statement in a block that always binds
the name ends the search; one that may bind it, or any in an enclosing loop, is one answer among several.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from .source import Definition, Loop, Scope, Source, blocks

Binds = Callable[[ast.stmt], bool]
"""Whether a statement itself (if compound, its head) binds the name."""


def definitions(source: Source, node: ast.stmt, binds: Binds) -> set[ast.stmt]:
    """The statements of the same scope whose binding a statement may see."""
    found: set[ast.stmt] = set()
    if isinstance(node, ast.While):  # its test is evaluated again after each iteration
        found |= _all_in(node, binds)
    child: ast.AST = node
    while child in source.parents:
        parent = source.parents[child]
        if _bound_before(parent, child, binds, found) or isinstance(parent, Scope):
            return found
        if isinstance(parent, Loop):
            if binds(parent) and child in parent.body:
                return found | {parent}
            found |= _all_in(parent, binds)
        elif isinstance(parent, ast.stmt) and binds(parent):
            return found | {parent}
        child = parent
    return found


def _bound_before(parent: ast.AST, child: ast.AST, binds: Binds, found: set[ast.stmt]) -> bool:
    """Search the statements before a child; True if one of them always binds."""
    block = next((one for one in blocks(parent) if child in one), [])
    before = block[: block.index(child)] if isinstance(child, ast.stmt) and block else []
    return any(_always(one, binds, found) for one in reversed(before))


def _always(node: ast.stmt, binds: Binds, found: set[ast.stmt]) -> bool:
    """Collect the bindings in a statement; True if one of them always takes effect."""
    if isinstance(node, Definition):
        return False
    if binds(node) and not isinstance(node, Loop):
        found.add(node)
        return True
    if isinstance(node, ast.If):
        ways = [_block_always(block, binds, found) for block in (node.body, node.orelse)]
        return all(ways)
    if isinstance(node, ast.With | ast.AsyncWith):
        return _block_always(node.body, binds, found)
    found |= _all_in(node, binds)
    return False


def _block_always(block: list[ast.stmt], binds: Binds, found: set[ast.stmt]) -> bool:
    return any(_always(one, binds, found) for one in reversed(block))


def _all_in(node: ast.stmt, binds: Binds) -> set[ast.stmt]:
    """Every statement that binds, among a statement and those nested in it."""
    found = {node} if binds(node) else set()
    for block in blocks(node):
        for one in block:
            if not isinstance(one, Definition):
                found |= _all_in(one, binds)
    return found
