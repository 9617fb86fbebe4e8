"""How much longer the steps of a block were than those around it, from the run's own ring.

Whatever changes slowly (neighbours on the machine, longer samples) is the same inside a block and around it.
On a device the device's own periods are used: the host's mislead there, because it runs ahead.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from .. import ring
from .plan import REACH, SETTLE, Block

LEAST_STEPS = 4
STALL, OFTEN = 5.0, 0.9
"""Choices: a step so many times as long as this part of the others is something else (a checkpoint, an
evaluation). The longest that is usual counts, not the median: where a loader paces a quick loop, its workers'
batches come together, and one step in a few waits for all of them."""
BEHIND = 16
"""A choice: steps the device's results may come later."""
_NOT_STEADY = ring.F_WARMUP | ring.F_SAMPLED | ring.F_COMPILED


def extra_ns(block: Block, periods: Mapping[int, int]) -> float | None:
    """What a step of this block takes longer than those around it; None where too few of them are known."""
    inside = _known(periods, range(block.first + SETTLE, block.last + 1))
    before, behind = block.first - REACH, block.last + SETTLE + 1
    beside = _known(periods, range(before, block.first)) + _known(periods, range(behind, behind + REACH))
    if not inside or not beside:
        return None
    longest = STALL * sorted(beside)[int(OFTEN * (len(beside) - 1))]
    inside, beside = ([one for one in side if one <= longest] for side in (inside, beside))
    if min(len(inside), len(beside)) < LEAST_STEPS:
        return None
    return statistics.fmean(inside) - statistics.fmean(beside)


def _known(periods: Mapping[int, int], steps: range) -> list[int]:
    return [periods[step] for step in steps if step in periods]


def periods(
    block: Block, record: Callable[[int], Sequence[int] | None], on_device: bool = False
) -> dict[int, int]:
    """Number of a step → its ns, for the steps this block is compared with, from the words of their records;
    warm-up and sampled ones are left out, and on a device those it did not time."""
    host: dict[int, int] = {}
    device: dict[int, int] = {}
    for number in range(block.first - REACH, block.last + SETTLE + REACH + BEHIND + 1):
        words = record(number)
        if words is None:
            continue
        if not words[ring.W_FLAGS] & _NOT_STEADY:
            host[number] = words[ring.W_END] - words[ring.W_BEGIN]
        if words[ring.W_DEVICE_SEQ]:
            device[words[ring.W_DEVICE_SEQ]] = words[ring.W_DEVICE_BUSY] + words[ring.W_DEVICE_STARVED]
    return {number: device[number] for number in host if number in device} if on_device else host
