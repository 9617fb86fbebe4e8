"""Numbers as a panel with this unit would show them."""

from __future__ import annotations

import math
import time

SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
BYTES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def shown(value: float | None, unit: str, decimals: int | None = None, now: float | None = None) -> str:
    if value is None or math.isnan(value):
        return "–"
    if unit == "percentunit":
        return f"{100 * value:.{decimals or 0}f} %"
    if unit == "s":
        return _seconds(value, decimals)
    if unit in ("bytes", "Bps"):
        return _bytes(value) + ("/s" if unit == "Bps" else "")
    if unit == "dateTimeFromNow":
        return f"{_seconds(max(0.0, (now or time.time()) - value / 1000), 0)} ago"
    tail = {"watt": " W", "celsius": " °C"}.get(unit, "")
    return _plain(value, decimals) + tail


def _plain(value: float, decimals: int | None) -> str:
    if decimals is not None:
        return f"{value:,.{decimals}f}"
    return f"{value:,.0f}" if value == int(value) else f"{value:.3g}"


def _seconds(value: float, decimals: int | None) -> str:
    if value >= 60:
        return f"{value / 60:.1f} min"
    for size, name in SECONDS:
        if abs(value) >= size:
            return f"{value / size:.{1 if decimals is None else decimals}f} {name}"
    return "0 s"


def _bytes(value: float) -> str:
    for size, name in BYTES:
        if abs(value) >= size:
            return f"{value / size:.1f} {name}"
    return "0 B"
