"""Numbers for people, as in `sdk.units`, and the quantities that only the monitor shows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from sdk.units import ABSENT as ABSENT
from sdk.units import duration as duration
from sdk.units import gain as gain
from sdk.units import gain_range as gain_range
from sdk.units import number as number
from sdk.units import percent as percent
from sdk.units import rate as rate
from sdk.units import seconds as seconds
from sdk.units import size as size
from sdk.units import small_percent as small_percent
from sdk.units import whole as whole


def tight_percent(ratio: float | None) -> str:
    """A percentage for a narrow column, without the space."""
    return ABSENT if ratio is None else f"{ratio * 100:.0f}%"


def bare_percent(ratio: float | None) -> str:
    """A percentage without its sign, for where the label next to it says what it is: "data 62"."""
    return ABSENT if ratio is None else f"{ratio * 100:.0f}"


def slope(value: float, margin: float) -> str:
    """With its margin: "0.98 ± 0.06"; what rounds to nothing has no sign."""
    return f"{round(value, 2) + 0.0:.2f} ± {margin:.2f}"


def against(ratio: float | None) -> str:
    """A ratio as a change: 0.13 of the best is "−87 %"."""
    if ratio is None:
        return ABSENT
    change = round((ratio - 1) * 100)
    return f"{'−' if change < 0 else '+' if change else ''}{abs(change)} %"


def visible(ratio: float | None) -> bool:
    """Whether a share is worth showing: a smaller one would read "0 %"."""
    return ratio is not None and round(ratio * 100) > 0


def filled(ratio: float, width: int) -> int:
    """How many of a bar's `width` cells a share fills; anything shown at all fills at least one."""
    return min(width, max(1, round(ratio * width)))


def tenths(value: float | None) -> str:
    """An amount of something countable: "2.4" GPUs."""
    return ABSENT if value is None else f"{value:.1f}"


def count(value: int | None) -> str:
    return ABSENT if value is None else number(value)


def gib(value: float | None) -> str:
    """Bytes as GiB without the unit, for "12.1/80 GiB"."""
    if value is None:
        return ABSENT
    amount = value / 2**30
    return f"{amount:.0f}" if amount >= 99.95 or amount == int(amount) else f"{amount:.1f}"


def of(used: float | None, total: float | None) -> str:
    """Used of total memory: "12.1/80 GiB"; "—" alone when neither is known."""
    if used is None and total is None:
        return ABSENT
    return f"{gib(used)}/{gib(total)} GiB"


def watts(value: float | None, limit: float | None) -> str:
    if value is None and limit is None:
        return ABSENT
    used = ABSENT if value is None else f"{value:.0f}"
    return f"{used} W" if limit is None else f"{used}/{limit:.0f} W"


def energy(joules: float | None) -> str:
    return ABSENT if joules is None else f"{joules / 3.6e6:.1f} kWh"


def celsius(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.0f}°"


def hertz(value: float | None) -> str:
    if value is None:
        return ABSENT
    return f"{value / 1e9:.2f} GHz" if value >= 1e9 else f"{value / 1e6:.0f} MHz"


def signed_seconds(value: float) -> str:
    """A change in time: "+1.2 ms", "−300 µs"."""
    return ("+" if value > 0 else "−" if value < 0 else "") + seconds(abs(value))


def signed_size(value: float | None) -> str:
    """A change in memory: "+12 MiB"."""
    return ABSENT if value is None else ("−" if value < 0 else "+") + size(abs(value))


def age(value: float | None) -> str:
    """A duration in one short word: 64s, 12m, 3h, 2d."""
    if value is None:
        return ABSENT
    for limit, factor, unit in ((100, 1, "s"), (6000, 60, "m"), (48 * 3600, 3600, "h")):
        if value < limit:
            return f"{int(value / factor)}{unit}"
    return f"{int(value / 86400)}d"


def ago(wall: float | None, now: float | None = None) -> str:
    """How long ago a moment was: "12m ago"."""
    if wall is None:
        return ABSENT
    return f"{age(max(0.0, (time.time() if now is None else now) - wall))} ago"


def clock(wall: float | None) -> str:
    return ABSENT if wall is None else time.strftime("%H:%M:%S", time.localtime(wall))


def date(wall: float | None) -> str:
    return ABSENT if wall is None else time.strftime("%m-%d %H:%M", time.localtime(wall))


def value_of(key: str, value: Any) -> str:
    """One evidence entry, scalar or configuration value, formatted by the unit in its key."""
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {value_of(str(k), v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(value_of(key, item) for item in value)
    return _by_unit(key, value) if isinstance(value, int | float) else str(value)


UNITS = (
    ("_bytes_per_second", rate),
    ("bytes_per_step", size),
    ("samples_per_second", number),
    ("_per_second", number),
    ("seconds_per_step", seconds),
    ("_seconds", seconds),
    (".seconds", seconds),
    ("_s", seconds),
    ("_bytes", size),
    ("_ratio", percent),
    ("_share", percent),
    ("_hertz", hertz),
)


def _by_unit(key: str, value: float) -> str:
    for suffix, show in UNITS:
        if key.endswith(suffix) or key == suffix.strip("_."):
            return show(value)
    if "share" in key.split("_"):
        return percent(value)
    if key.endswith("_celsius"):
        return f"{value:.0f}°"
    return f"{value:.0f} W" if key.endswith("_watts") else number(value)


def moment(value: float, apart: float) -> str:
    """A moment of a run, told from another so many seconds apart: 4 min 12 s, or 1:00:12 and 1:12.5 where a
    duration would leave out what differs."""
    if value < 60:
        return seconds(value)
    if apart >= 60 or (apart >= 1 and value < 3600):
        return duration(value)
    digits = 0 if apart >= 1 else 1 if apart >= 0.1 else 2
    minutes, rest = divmod(round(value, digits), 60)
    shown = f"{rest:0{digits + 3 if digits else 2}.{digits}f}"
    return f"{minutes:.0f}:{shown}" if minutes < 60 else f"{minutes // 60:.0f}:{minutes % 60:02.0f}:{shown}"


def label(key: str) -> str:
    """A key without its unit, as words: "data_wait_seconds" → "data wait". A variable of the environment
    keeps its name."""
    if key.isupper():
        return key
    for suffix in ("_bytes_per_second", "_seconds", "_bytes", "_ratio", "_hertz", "_celsius", "_watts", "_s"):
        if key.endswith(suffix) and len(key) > len(suffix):
            key = key.removesuffix(suffix)
            break
    return key.replace("_", " ")
