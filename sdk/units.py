"""Numbers for people: the one place where a quantity becomes text. Absent is "—", never 0.

`monitor.model.units` adds what only the monitor shows. The live page has a copy in JavaScript; shared test
vectors keep the two in step.
"""

from __future__ import annotations

ABSENT = "—"


def percent(ratio: float | None) -> str:
    return ABSENT if ratio is None else f"{ratio * 100:.0f} %"


def small_percent(ratio: float | None) -> str:
    """A percentage often below one, with two digits: "0.06 %", "1.1 %", "12 %"."""
    if ratio is None:
        return ABSENT
    return f"{ratio * 100:.2g} %" if ratio < 0.1 else percent(ratio)


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


def whole(value: float | None) -> str:
    """A count with every digit; an average of counts is rounded: 12,345."""
    return ABSENT if value is None else f"{value:,.0f}"


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


def seconds(value: float | None) -> str:
    """A measured time: 40 ns, 312 µs, 45.1 ms, 2.31 s, then minutes."""
    if value is None:
        return ABSENT
    if value == 0:
        return "0 s"
    if value < 1e-6:
        return f"{_plain(value * 1e9, 3)} ns"
    if value < 0.001:
        return f"{_plain(value * 1e6, 3)} µs"
    if value < 1:
        return f"{_plain(value * 1e3, 3)} ms"
    return f"{_plain(value, 3)} s" if value < 100 else duration(value)


def duration(value: float | None) -> str:
    """A span of time in at most two units: 45 s, 4 min 12 s, 2 h 05 min, 3 d 4 h."""
    if value is None:
        return ABSENT
    whole = int(max(0.0, value))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def gain(ratio: float | None) -> str:
    """A speed-up: ×1.23, ×2.4, ×28. Nobody predicts a third digit."""
    return ABSENT if ratio is None else f"×{ratio:.{_gain_digits(ratio)}f}"


def gain_range(low: float, likely: float, high: float) -> str:
    """A predicted speed-up with its range: "×2.1 (1.7–2.4)"."""
    digits = _gain_digits(likely)
    return f"×{likely:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def _gain_digits(ratio: float) -> int:
    return 2 if ratio < 1.5 else 1 if ratio < 9.95 else 0
