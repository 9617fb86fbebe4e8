"""Which devices a loop is timed on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from .absent import NoDevice

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
    from .timed import lanes  # a dozen modules that a loop without a device does not need

    return lanes(torch, places, flag_next)


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
