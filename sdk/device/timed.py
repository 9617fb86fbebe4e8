"""The lanes of the devices on which a loop is timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._kernels import KernelWindow
from ._marks import Marks
from ._profiler import Companion, Profiler
from ._syncs import SyncWindow
from .absent import NoDevice
from .lane import DeviceLane
from .several import SeveralDevices


def lanes(torch: Any, places: Sequence[Any], flag_next: Callable[[int], None]) -> NoDevice:
    """One lane for all of them; the first device leads."""
    first, *others = places
    profiler, alone = Profiler(torch, first), not others
    syncs = SyncWindow(torch.cuda, flag_next) if first.type == "cuda" else None
    lane = _lane(torch, first, KernelWindow(lambda: profiler, flag_next), syncs, alone)
    return lane if alone else SeveralDevices(lane, {str(one): _other(torch, one, profiler) for one in others})


def _lane(torch: Any, where: Any, window: KernelWindow, syncs: SyncWindow | None, alone: bool) -> DeviceLane:
    marks = Marks(
        lambda: torch.Event(device=where, enable_timing=True),
        lambda: torch.accelerator.current_stream(where.index),
    )
    capturing = torch.cuda.is_current_stream_capturing if where.type == "cuda" else lambda: False
    return DeviceLane(marks, capturing, window, syncs, alone)


def _other(torch: Any, where: Any, leader: Profiler) -> DeviceLane:
    window = KernelWindow(lambda: Companion(leader, where.index), lambda flags: None)
    return _lane(torch, where, window, None, False)
