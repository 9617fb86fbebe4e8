"""The devices of one process, each by itself: while one waits, another may work."""

from __future__ import annotations

from monitor.model import units
from monitor.model.run import Run

BUSY = 0.10
"""A device that is idle for less than this limits the step itself. Our choice: what remains is hardly worth
changing the code for."""


def idle_ratios(run: Run) -> dict[str, float | None]:
    """Device → share of its time without work, None if unknown; of the first rank, the one its figures are
    of first."""
    if not run.ranks:
        return {}
    first = run.ranks[0]
    others = {one.name: one.idle_ratio for one in run.other_devices}
    return {first.device or "the first": first.device_times.starved_ratio, **others}


def by_device(run: Run) -> str:
    """ "cuda:0 idle 50 %, cuda:1 idle 62 %" of a process with several devices; else empty."""
    if not run.other_devices:
        return ""
    told = idle_ratios(run).items()
    return ", ".join(
        f"{name} idle {'unknown' if idle is None else units.percent(idle)}" for name, idle in told
    )
