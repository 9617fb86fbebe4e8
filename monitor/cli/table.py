"""Plain tables and numbers for the terminal; absent is "—"."""

from __future__ import annotations

from collections.abc import Sequence

ABSENT = "—"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Columns as wide as they need to be; `right` are aligned to the right."""
    everything = [tuple(head), *map(tuple, rows)]
    widths = [max(len(row[at]) for row in everything) for at in range(len(head))]
    lines = []
    for row in everything:
        cells = [
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def number(value: float | None) -> str:
    if value is None:
        return ABSENT
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value else "0"


def seconds(value: float | None) -> str:
    """0.00123 → 1.23 ms."""
    if value is None:
        return ABSENT
    if value == 0:
        return "0"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(value) >= size:
            return f"{value / size:.3g} {unit}" if value < 1000 else f"{value:,.0f} s"
    return f"{value * 1e9:.3g} ns"


def share(value: float | None) -> str:
    return ABSENT if value is None else f"{value * 100:.1f} %"


def size(value: float | None) -> str:
    if value is None:
        return ABSENT
    for unit, bytes_ in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(value) >= bytes_:
            return f"{value / bytes_:.3g} {unit}"
    return f"{value:.0f} B"


def ago(value: float) -> str:
    """How long ago, in its largest unit."""
    value = max(0.0, value)
    for unit, size_ in (("d", 86400), ("h", 3600), ("min", 60)):
        if value >= 1.5 * size_:
            return f"{value / size_:.0f} {unit} ago"
    return f"{value:.0f} s ago"
