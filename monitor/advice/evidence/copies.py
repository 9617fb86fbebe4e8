"""What copies to the device cost per step."""

from __future__ import annotations

from typing import NamedTuple

from monitor.advice.context.run import RunContext
from monitor.advice.prediction.gain import Bounds, Outcomes
from monitor.advice.prediction.step_model import Change, saved

PINNED_BYTES = Bounds(low=4e9, likely=12e9, high=50e9)
"""Bytes per second from pinned memory: a narrow or old link, PCIe 3 with 16 lanes, PCIe 5. Literature
values."""
PINNED_LEFT = Bounds(low=0.6, likely=0.4, high=0.1)
"""Share of a pageable copy's time that a pinned one takes, if the bytes are unknown. Judgement."""


class ExposedCopies(NamedTuple):
    """Seconds and share of a step, and the step without them."""

    seconds: float
    share: float
    outcomes: Outcomes


def exposed_copies(run: RunContext, without: Bounds) -> ExposedCopies:
    """Copies that nothing hides: the device's gaps while they run, which pinned memory without waiting would
    close; else the time the loop spends in them, of which the share `without` is saved."""
    device, lanes = run.device, run.lanes
    if lanes is not None and device is not None and device.copy_idle_seconds is not None:
        cost = device.copy_idle_seconds
        left = _pinned(run.scalar("transfer.bytes_per_step"), device.copy_seconds)
        return ExposedCopies(cost, cost / lanes.period, left.of(lambda value: Change(copies_left=value)))
    cost = run.seconds("transfer")
    return ExposedCopies(cost, run.share("transfer"), without.part_of(saved("transfer", cost, "transfer")))


def _pinned(size: float | None, seconds: float | None) -> Bounds:
    """Share of the copies' time that remains with pinned memory."""
    if not size or not seconds:
        return PINNED_LEFT
    return Bounds(*(min(PINNED_LEFT.low, size / rate / seconds) for rate in PINNED_BYTES))
