"""What one call for a whole batch saves of work done sample by sample: the fixed cost of its operations.

The arithmetic on the numbers stays as it is. So lines of a few heavy operations gain nothing, and lines of
many light ones nearly all.
"""

from __future__ import annotations

import ast

from monitor.advice.context.hotspot import Hotspot
from monitor.advice.context.input import LOADER_PHASES
from monitor.advice.context.run import RunContext
from monitor.advice.evidence import loading
from monitor.advice.prediction.gain import Bounds

USUAL = Bounds(low=0.1, likely=0.25, high=0.6)
"""Fixed cost of an operation on one sample, in those of a module. Tried by hand with pictures of three sizes
on a machine with two cores; the doubt is judgement."""
LIBRARY = 5
"""Operations of a line whose time is inside a library's Python code: a transform makes several. Judgement."""
UNREADABLE = 3
"""Operations of a line whose text says nothing. Judgement."""

LEAST_REMOVED = 0.15
"""Share of the loader's work that a whole batch must save to be worth the change. Chosen."""


def worthwhile(run: RunContext) -> bool:
    """Whether the random part of the samples should be made for a whole batch at once."""
    return removable(run).likely >= LEAST_REMOVED


def removable(run: RunContext) -> Bounds:
    """Shares of the loader's work that the random lines of the data set would not have for a whole batch."""
    lines = [spot for spot in run.hotspots if spot.phase in LOADER_PHASES and spot.in_data_set]
    rounds = run.batch_size or 1
    return _removable(run, [(spot, spot.share, rounds) for spot in lines if spot.random])


def collate_worthwhile(run: RunContext) -> bool:
    """Whether what the collate function draws should be drawn in fewer calls."""
    return removable_of_collate(run).likely >= LEAST_REMOVED


def removable_of_collate(run: RunContext) -> Bounds:
    """The same for what the collate function draws. It may have the whole batch already: only counted calls
    tell that it works sample by sample."""
    whole = loading.part_share(run, "collate") or 0.0
    lines = [spot for spot in loading.lines_of(run, "collate") if spot.random]
    return _removable(
        run, [(spot, spot.share * (whole if spot.phase == "collate" else 1.0), 1) for spot in lines]
    )


def _removable(run: RunContext, lines: list[tuple[Hotspot, float, int]]) -> Bounds:
    """Of lines, each with its share of the loader's work and the least number of its rounds a batch."""
    batch, work = run.batch_size or 1, run.model.work
    if batch <= 1 or work <= 0:
        return Bounds(0.0, 0.0, 0.0)

    def saved(cost: float) -> float:
        seconds = cost * run.policy.op_seconds_cpu
        fixed = (
            min(share, _operations(spot) * max(spot.calls or 0.0, least) * seconds / work)
            for spot, share, least in lines
        )
        return min(1.0, sum(fixed) * (1.0 - 1.0 / batch))

    return Bounds(*map(saved, USUAL))


def _operations(spot: Hotspot) -> int:
    """Calls, arithmetic and indexing of the line, each of them an operation on a tensor at most."""
    if spot.inside:
        return LIBRARY
    try:
        tree = ast.parse(spot.code.rstrip(":…") or "…")
    except SyntaxError:
        return UNREADABLE
    return sum(isinstance(node, ast.Call | ast.BinOp | ast.Subscript) for node in ast.walk(tree))
