"""Numbers for people. Absent is "—", never 0; units are spelled so that columns align."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

ABSENT = "—"


def percent(ratio: float | None) -> str:
    return ABSENT if ratio is None else f"{ratio * 100:.0f}%"


def share(ratio: float | None) -> str:
    """A percentage in a sentence, with the space a sentence wants."""
    return ABSENT if ratio is None else f"{ratio * 100:.0f} %"


def number(value: float | None, digits: int = 3) -> str:
    """Three significant digits, SI letters above 9999: 3.21, 205, 12.4k, 1.2M."""
    if value is None:
        return ABSENT
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    for factor, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= factor:
            return _plain(value / min(factor, 1e3 if letter == "k" else factor), digits) + letter
    return _plain(value, digits)


def _plain(value: float, digits: int) -> str:
    if value == int(value) and abs(value) < 1e4:
        return str(int(value))
    size = abs(value)
    if 0 < size < 0.001:
        return f"{value:.{digits - 1}e}"
    places = digits - 1 if size < 10 else digits - 2 if size < 100 else 0
    return f"{value:.{max(places, 0) if size >= 1 else digits}f}"


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


def size(value: float | None) -> str:
    if value is None:
        return ABSENT
    for factor, unit in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if value >= factor:
            return f"{_plain(value / factor, 3)} {unit}"
    return f"{value:.0f} B"


def rate(value: float | None) -> str:
    if value is None:
        return ABSENT
    for factor, unit in ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")):
        if value >= factor:
            return f"{_plain(value / factor, 2 if value / factor >= 10 else 3)} {unit}"
    return f"{value:.0f} B/s"


def watts(value: float | None, limit: float | None) -> str:
    if value is None and limit is None:
        return ABSENT
    used = ABSENT if value is None else f"{value:.0f}"
    return f"{used} W" if limit is None else f"{used}/{limit:.0f} W"


def celsius(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.0f}°"


def hertz(value: float | None) -> str:
    if value is None:
        return ABSENT
    return f"{value / 1e9:.2f} GHz" if value >= 1e9 else f"{value / 1e6:.0f} MHz"


def seconds(value: float | None) -> str:
    """A measured time: 312 µs, 45.1 ms, 2.31 s, then minutes."""
    if value is None:
        return ABSENT
    if value == 0:
        return "0 s"
    if value < 0.001:
        return f"{_plain(value * 1e6, 3)} µs"
    if value < 1:
        return f"{_plain(value * 1e3, 3)} ms"
    return f"{_plain(value, 3)} s" if value < 100 else duration(value)


def duration(value: float | None) -> str:
    """A span of time in two units at most: 45 s, 4 m 12 s, 2 h 05 m, 3 d 4 h."""
    if value is None:
        return ABSENT
    whole = int(max(0.0, value))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} m"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def age(value: float | None) -> str:
    """The same in one short word: 64s, 12m, 3h, 2d."""
    if value is None:
        return ABSENT
    for limit, factor, unit in ((100, 1, "s"), (6000, 60, "m"), (48 * 3600, 3600, "h")):
        if value < limit:
            return f"{int(value / factor)}{unit}"
    return f"{int(value / 86400)}d"


def clock(wall: float | None) -> str:
    return ABSENT if wall is None else time.strftime("%H:%M:%S", time.localtime(wall))


def date(wall: float | None) -> str:
    return ABSENT if wall is None else time.strftime("%m-%d %H:%M", time.localtime(wall))


def gain(low: float, likely: float, high: float) -> str:
    """A predicted speed-up with its range: "×2.1 (1.7–2.4)"."""
    digits = 2 if likely < 1.5 else 1 if likely < 9.95 else 0
    return f"×{likely:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def value_of(key: str, value: Any) -> str:
    """One entry of evidence, a scalar or the configuration, by the unit its key carries."""
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
    ("_ratio", share),
    ("_share", share),
    ("_hertz", hertz),
)


def _by_unit(key: str, value: float) -> str:
    for suffix, show in UNITS:
        if key.endswith(suffix) or key == suffix.strip("_."):
            return show(value)
    if key.endswith("_celsius"):
        return f"{value:.0f}°"
    return f"{value:.0f} W" if key.endswith("_watts") else number(value)


def label(key: str) -> str:
    """A key without its unit, as words: "data_wait_seconds" → "data wait"."""
    for suffix in ("_bytes_per_second", "_seconds", "_bytes", "_ratio", "_hertz", "_celsius", "_watts", "_s"):
        if key.endswith(suffix) and len(key) > len(suffix):
            key = key.removesuffix(suffix)
            break
    return key.replace("_", " ")
