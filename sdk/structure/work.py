"""The work of a training loop, piece by piece: what each costs, including everything it calls, and whether a
step needs it.

A piece is the outermost statement on a sampled call stack that does not itself lead to the update, together
with the loop it fills, or with similar neighbors.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import apis
from .draws import Draws
from .effects import Effect
from .files import short_path
from .flow import NO, UNKNOWN, YES, Flow
from .hoisting import hoist
from .lines import Lines
from .loops import guard
from .places import Path, Place, Seen
from .reader import Reader
from .settled import Settled
from .sites import indented, sites, top
from .source import Function, Loop, Scope, Source, blocks, read
from .untrained import untrained

UPDATE_PHASES = ("backward", "optimizer")
MOST_PIECES = 12
"""Chosen: pieces that go into the meta, which has 62 KiB for everything."""
_CODE = 160
_MODEL_SHARE = 0.5
"""Chosen: a piece that spends this share of its time inside modules is a pass through a model."""
_JUDGE_SHARE = 0.2
"""Chosen: the same without gradients, when reading the result may take longer than the pass."""
_JOBS_OF_UNNEEDED = ("save", "copy", "plot", "log", "file", "process", "network", "hash", "sleep", "gc")
"""Jobs that name work no step needs, the most telling first."""


@dataclass(slots=True)
class Piece:
    """Statements of one block that form one piece of work."""

    source: Source
    nodes: list[ast.stmt]
    effects: list[Effect]
    needed: str
    paths: list[Path] = field(default_factory=list)

    @property
    def ns(self) -> int:
        return sum(path.ns for path in self.paths)


class Work:
    """Sorts sampled call stacks into pieces of work."""

    def __init__(self, seen: Seen, constant: Callable[[Place], bool]) -> None:
        self._reader = Reader()
        self.lines = Lines(self._reader)
        self.draws = Draws(self._reader)
        self.flow = Flow(self._reader)
        self.settled = Settled(self._reader, self.lines).settled
        self._seen = seen
        self._constant = constant
        self._piece_of: dict[int, Piece] = {}

    def learn(self, paths: Iterable[Path]) -> None:
        """Find the way to the update, from the stacks seen during it and the source of all files seen."""
        files = {place.file for path in paths for place in path.frames}
        for source in filter(None, map(read, sorted(files))):
            for scope in (source.tree, *(one for one in source.names if isinstance(one, Function))):
                if any(one.update or one.leads for one in self._reader.effects(source, scope)):
                    self.flow.add(source, scope)
        for path in paths:
            if path.phase in UPDATE_PHASES:
                self._follow(path)

    def _follow(self, path: Path) -> None:
        """Follow calls from the outermost to the update; what a backward pass re-runs is not on the way."""
        for place in reversed(path.sure):
            source = read(place.file)
            node = source.statement_at(place.line) if source else None
            if source is None or node is None:
                continue
            is_update = self._reader.effect(source, source.scope_at(place.line), node).update
            self.flow.leads_to_update(source, place.line)
            if is_update:
                return

    def pieces(self, paths: Iterable[Path]) -> list[Piece]:
        """The work outside the update, the most expensive first."""
        self._piece_of.clear()
        found: dict[ast.stmt, Piece] = {}
        for path in paths:
            site = self._site(path)
            if site is None:
                continue
            source, node = site
            if node not in found:
                found[node] = self._piece(source, node)
            found[node].paths.append(path)
        pieces = sorted(_joined(self.flow, list(found.values())), key=lambda piece: -piece.ns)
        self._piece_of = {id(path): piece for piece in pieces for path in piece.paths}
        return pieces

    def piece_at(self, path: Path) -> tuple[str, int] | None:
        """(file, line) of the piece of work a stack belongs to."""
        piece = self._piece_of.get(id(path))
        return (short_path(piece.source.file), piece.nodes[0].lineno) if piece else None

    def is_update(self, place: Place) -> bool:
        """Whether the statement leads to the update or is part of it."""
        source = read(place.file)
        node = source.statement_at(place.line) if source else None
        return source is not None and node is not None and self._on_the_way(source, node)

    def _on_the_way(self, source: Source, node: ast.stmt) -> bool:
        return any(one in self.flow.spine for one in source.sharing(node))

    def _site(self, path: Path) -> tuple[Source, ast.stmt] | None:
        """The outermost statement of a stack that does not lead to the update, or the loop it fills."""
        for at in range(len(path.frames) - 1, len(path.frames) - len(path.sure) - 1, -1):
            source = read(path.frames[at].file)
            node = source.statement_at(path.frames[at].line) if source else None
            if source is not None and node is not None and not self._on_the_way(source, node):
                path.inside = at + 1
                return source, self._lifted(source, node)
        return None

    def _lifted(self, source: Source, node: ast.stmt) -> ast.stmt:
        """The loop or block around a statement, as long as all of it is needed or none of it."""
        own = self.flow.needed(_simple(node))
        for parent in source.outward(node):
            if not isinstance(parent, ast.For | ast.While | ast.With | ast.Try) or parent in self.flow.spine:
                break
            if self.flow.needed(_simple(parent)) != own:
                break
            node = parent
        return node

    def _piece(self, source: Source, node: ast.stmt) -> Piece:
        nodes = source.sharing(node)
        inside = [each for one in nodes for each in _simple(one)]
        scope = source.scope(node)
        effects = [self._reader.effect(source, scope, one) for one in inside]
        return Piece(source, nodes, effects, self.flow.needed(inside))

    def sites(self, paths: Iterable[Path]) -> dict[str, Any]:
        """Where the calls are that a remedy would change; `top` is the line below the script's imports."""
        files = dict.fromkeys(place.file for path in paths for place in reversed(path.frames))
        sources = [one for one in map(read, files) if one is not None]
        loops = [(one.source, node) for one in self.flow.effects if isinstance(node := one.node, Loop)]
        steps = [one for one in loops if one[1] in self.flow.spine]
        found = sites(self._reader, sources, steps)
        below = top(sources[0]) if sources else None
        feeding, others = untrained(self.flow, self.lines)
        more = {"top": below, "made_to_train_on": _place(feeding[0]) if feeding and not others else None}
        return found | {name: value for name, value in more.items() if value}

    def describe(self, piece: Piece, steps: int, phases: dict[str, int]) -> list[dict[str, Any]]:
        """The piece as stored in the meta: one entry for each phase it was seen in."""
        facts = self._facts(piece)
        found = []
        for phase in sorted({path.phase for path in piece.paths}):
            paths = [path for path in piece.paths if path.phase == phase]
            ns = sum(path.ns for path in paths)
            seen = set().union(*(path.steps for path in paths))
            hot = max(paths, key=lambda path: path.ns).frames[0]
            found.append(
                {
                    "phase": phase,
                    "share": round(ns / max(1, phases[phase]), 4),
                    "seconds": ns / 1e9 / max(1, steps),
                    "steps_seen": len(seen),
                    "steps": steps,
                    "hot": {"file": short_path(hot.file), "line": hot.line},
                    **facts,
                }
            )
        return found

    def _facts(self, piece: Piece) -> dict[str, Any]:
        module = sum(one.ns for one in piece.paths if any(map(_passes, one.own)))
        grad = self._records(piece)
        judges = module >= (_MODEL_SHARE if grad else _JUDGE_SHARE) * piece.ns
        needed = piece.needed
        if judges and grad:  # a pass with gradients is the model, wherever it is
            needed = YES if needed == YES else UNKNOWN
        inside = self._in_forward(piece)  # what a model does there without gradients is part of it
        job, api = self._job(piece, needed, judges and not grad and not inside)
        first = piece.nodes[0]
        found: dict[str, Any] = {
            "file": short_path(piece.source.file),
            "line": first.lineno,
            "function": _scope_name(piece.source, first),
            "code": piece.source.text_between(first.lineno, first.lineno)[0].strip()[:_CODE],
            "needed": needed,
            "job": job,
            "api": api,
        }
        flags = {
            "module": judges,
            "no_grad": not grad,
            "in_forward": inside,
            "constant": self._is_constant(piece),
            "random": any(apis.draws(one) for effect in piece.effects for one in effect.apis),
            "carried": any(effect.carries for effect in piece.effects),
            "pure": not any(effect.changes for effect in piece.effects),
            "moves": any(effect.moves for effect in piece.effects),
            "feeds": self.flow.feeds(one.node for one in piece.effects),
            "grad": grad and (self._derives(piece, needed) or self._learns(piece)),
            "blocking": job in apis.BLOCKING,
        }
        found |= {name: True for name, value in flags.items() if value}
        return found | self._edits(piece, found)

    def _learns(self, piece: Piece) -> bool:
        return self.flow.learns(one.node for one in piece.effects)

    def _derives(self, piece: Piece, needed: str) -> bool:
        """Whether it takes gradients that the update needs: a pass of its own, as `backward()` is one."""
        return needed == YES and any(apis.derives(one) for effect in piece.effects for one in effect.apis)

    def _records(self, piece: Piece) -> bool:
        """Whether gradients are recorded in a pass of a module, or else anywhere in the piece."""
        passes = [path for path in piece.paths if any(map(_passes, path.own))]
        return any(map(self._path_records, passes or piece.paths))

    def _path_records(self, path: Path) -> bool:
        """According to the source where it switches them off, else to the interpreter at the outermost line
        it knows: the lines of a model itself are shared by passes with gradients and without."""
        places = [place[:2] for place in reversed(path.own)]
        if any(self.lines.without_gradients(*one) for one in places):
            return False
        return next((self._seen.grad[one] for one in places if one in self._seen.grad), True)

    def _job(self, piece: Piece, needed: str, judges: bool) -> tuple[str, str]:
        """(job, the library function that reveals it)."""
        names = {name for path in piece.paths for name in path.entered}
        names |= {name for effect in piece.effects for name in effect.apis}
        for path in piece.paths:
            names |= {name for place in path.own for name in self._seen.called.get(place[:2], {}).values()}
        jobs: dict[str, str] = {}
        for name in sorted(names):
            jobs.setdefault(apis.job(name), name)
        if needed == YES:
            return "", ""
        if judges:
            return "validate", ""
        gradients = any(effect.gradients for effect in piece.effects)
        if gradients and {"norm", "sync"} & set(jobs):
            return "grad_norm", jobs.get("norm") or jobs["sync"]
        found = next((job for job in _JOBS_OF_UNNEEDED if job in jobs), "")
        if found:
            return found, jobs[found]
        return self._own_job(piece, needed, jobs)

    def _own_job(self, piece: Piece, needed: str, jobs: dict[str, str]) -> tuple[str, str]:
        """The job of work that calls no library function with one: known only if no step needs it."""
        if "metrics" in jobs:
            return "metrics", jobs["metrics"]
        if needed != NO:
            return "", ""
        averages = any(effect.carries & effect.changes for effect in piece.effects)
        if averages and "sync" not in jobs:  # totals of values read out of tensors are no weights
            return "copy", ""
        reads = {name for effect in piece.effects for name in effect.apis} - {"?.append", "builtins.float"}
        if "sync" in jobs and all(apis.job(name) == "sync" for name in reads):
            return "sync", jobs["sync"]
        return "metrics", ""

    def _in_forward(self, piece: Piece) -> bool:
        scope = piece.source.scope(piece.nodes[0])
        return isinstance(scope, Function) and scope.name == "forward"

    def constant(self, path: Path) -> list[Place]:
        """Where a stack is in functions that returned the same in every step, not by chance: what they are
        called with is not drawn."""
        frames = path.frames
        return [
            place
            for at, place in enumerate(frames)
            if self._constant(place)
            and not (at + 1 < len(frames) and self.draws.gives(frames[at + 1][:3], place[:3]))
        ]

    def _is_constant(self, piece: Piece) -> bool:
        """Whether most of its time is in functions that returned the same in every step."""
        draws = any(apis.draws(one) for effect in piece.effects for one in effect.apis)
        same = sum(path.ns for path in piece.paths if {*self.constant(path)} & {*path.own})
        return not draws and same > _MODEL_SHARE * piece.ns

    def _edits(self, piece: Piece, facts: dict[str, Any]) -> dict[str, Any]:
        """How the source could be changed, if the result would run and change nothing a step needs."""
        if facts.get("in_forward"):
            return {}
        if facts["needed"] == NO and not facts.get("carried"):
            found = guard(self.flow, piece.nodes, piece.effects[0])
            if found is not None:
                lines = indented(found.lines)
                shown = {"line": found.line, "lines": lines, "counter": found.counter}
                return {"guard": shown | ({"within": found.within} if found.within > 1 else {})}
        if facts.get("constant") and len(piece.nodes) == 1:
            moved = hoist(self.flow, piece.effects[0], self._constant_functions(piece))
            return {"hoist": moved} if moved else {}
        return {}

    def _constant_functions(self, piece: Piece) -> set[str]:
        return {place.name for path in piece.paths for place in self.constant(path) if place in path.own}


def _place(effect: Effect) -> dict[str, Any]:
    return {"file": short_path(effect.source.file), "line": effect.node.lineno}


def _passes(place: Place) -> bool:
    """Within a pass of a module. `forward` is torch's name for it, also where it is called directly."""
    return place.module or place.name.rpartition(".")[2] == "forward"


def _simple(node: ast.stmt) -> list[ast.stmt]:
    """A statement and all those nested in it."""
    found = [node]
    for block in blocks(node):
        for one in block:
            found += _simple(one)
    return found


def _scope_name(source: Source, node: ast.stmt) -> str:
    scope: Scope = source.scope(node)
    return source.names[scope] if isinstance(scope, Function) else "<module>"


def _joined(flow: Flow, pieces: Sequence[Piece]) -> list[Piece]:
    """Merge pieces of a block that no step needs, unless a step needs something between them."""
    found: list[Piece] = []
    for piece in sorted(pieces, key=lambda one: (one.source.file, one.nodes[0].lineno)):
        last = found[-1] if found else None
        between = _between(last, piece) if last is not None else None
        if last is not None and between is not None and _joins(flow, last, piece, between):
            last.nodes = [*last.nodes, *between, *piece.nodes]
            last.effects += [
                flow.reader.effect(piece.source, piece.source.scope(one), one) for one in between
            ]
            last.effects += piece.effects
            last.paths += piece.paths
        else:
            found.append(piece)
    return found


def _between(first: Piece, second: Piece) -> list[ast.stmt] | None:
    """The statements between two pieces of the same block; None if they are in different blocks."""
    parent = first.source.parents.get(first.nodes[-1])
    if (
        parent is None
        or first.source is not second.source
        or second.source.parents.get(second.nodes[0]) is not parent
    ):
        return None
    block = next((one for one in blocks(parent) if first.nodes[-1] in one and second.nodes[0] in one), None)
    if block is None:
        return None
    return block[block.index(first.nodes[-1]) + 1 : block.index(second.nodes[0])]


def _joins(flow: Flow, first: Piece, second: Piece, between: list[ast.stmt]) -> bool:
    counts = any(isinstance(one, ast.AugAssign) for one in between)
    return (
        first.needed == second.needed == NO
        and not counts
        and flow.needed([each for one in between for each in _simple(one)]) == NO
    )
