"""Points in an open record where a step may have begun, and the record's split there."""

from __future__ import annotations

from typing import NamedTuple

from .. import ring
from ..loop.recorder import Cut, Recorder


class Start(NamedTuple):
    """A step may have begun here."""

    cut: Cut
    batches: int
    passes: int
    """How many of each the record had."""
    optimizer: int
    """`id` of the optimizer that had stepped most recently."""
    by_batch: bool


def split(recorder: Recorder, starts: list[Start]) -> tuple[int, int]:
    """Steps did begin at these points: commit what precedes each. Returns how many batches and passes went
    with that."""
    begun = [start for start in starts if start.cut.at > recorder.scratch[ring.W_BEGIN]]
    batches = passes = 0
    for start in begun:
        had = start.passes - passes
        micro = min(start.batches - batches or had, had, ring.MOST_MICRO_BATCHES)
        if micro > 1:
            recorder.flag_cut(start.cut, micro << ring.MICRO_BATCHES_SHIFT)
        batches, passes = start.batches, start.passes
    recorder.split([start.cut for start in begun])
    return batches, passes
