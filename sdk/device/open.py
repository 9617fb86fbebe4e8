"""Which device a loop is timed on."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ._kernels import KernelWindow
from ._marks import Marks
from ._profiler import Profiler
from ._syncs import SyncWindow
from .lane import DeviceLane, NoDevice

_WITHOUT_EVENTS = ("cpu", "meta", "mps")
"""mps has events, but querying one waits for it."""


def open_lane(device: str | None, flag_next: Callable[[int], None]) -> NoDevice:
    """A lane for the parameters' device, whichever device is current."""
    torch = sys.modules.get("torch")
    if torch is None or device is None or device.partition(":")[0] in _WITHOUT_EVENTS:
        return NoDevice()
    try:
        where = torch.device(device)
        if where.index is None:
            where = torch.device(where.type, torch.accelerator.current_device_index())
        torch.Event(device=where, enable_timing=True)
        torch.accelerator.current_stream(where.index)
    except (AttributeError, RuntimeError, NotImplementedError, TypeError, ValueError):
        return NoDevice()
    marks = Marks(
        lambda: torch.Event(device=where, enable_timing=True),
        lambda: torch.accelerator.current_stream(where.index),
    )
    capturing = torch.cuda.is_current_stream_capturing if where.type == "cuda" else lambda: False
    window = KernelWindow(lambda: Profiler(torch, where), flag_next)
    syncs = SyncWindow(torch.cuda, flag_next) if where.type == "cuda" else None
    return DeviceLane(marks, capturing, window, syncs)
