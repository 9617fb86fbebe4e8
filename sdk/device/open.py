"""Which devices a loop is timed on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from ._kernels import KernelWindow
from ._marks import Marks
from ._profiler import Companion, Profiler
from ._syncs import SyncWindow
from .lane import DeviceLane, NoDevice
from .several import SeveralDevices

_WITHOUT_EVENTS = ("cpu", "meta", "mps")
"""mps has events, but querying one waits for it."""
_CANNOT = (AttributeError, RuntimeError, TypeError, ValueError)


def open_lane(devices: Sequence[str | None], flag_next: Callable[[int], None]) -> NoDevice:
    """A lane for the parameters' device, whichever device is current, and for the others that work for the
    loop."""
    torch = sys.modules.get("torch")
    places = [place for device in devices if (place := _place(torch, device)) is not None]
    if not places:
        return NoDevice()
    first, *others = places
    profiler, alone = Profiler(torch, first), not others
    syncs = SyncWindow(torch.cuda, flag_next) if first.type == "cuda" else None  # type: ignore[union-attr]
    lane = _lane(torch, first, KernelWindow(lambda: profiler, flag_next), syncs, alone)
    return lane if alone else SeveralDevices(lane, {str(one): _other(torch, one, profiler) for one in others})


def _place(torch: Any, device: str | None) -> Any:
    """The device with its number; None if there are no events on it."""
    if torch is None or device is None or device.partition(":")[0] in _WITHOUT_EVENTS:
        return None
    try:
        where = torch.device(device)
        if where.index is None:
            where = torch.device(where.type, torch.accelerator.current_device_index())
        torch.Event(device=where, enable_timing=True)
        torch.accelerator.current_stream(where.index)
    except _CANNOT:
        return None
    return where


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
