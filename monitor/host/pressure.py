"""Linux PSI: how much of the time tasks waited for CPU, memory or I/O.

This is the reading that tells "busy" from "too busy": load counts tasks, pressure counts lost time.
"""

from __future__ import annotations

from monitor.host.procfs import HeldFile, Roots
from monitor.model.host import Pressure

NO_PRESSURE = Pressure()


def parse_pressure(text: str, *, with_full: bool = True) -> Pressure:
    """PSI text as ratios and seconds; missing or malformed lines give None."""
    lines = {line.split(" ", 1)[0]: line for line in text.splitlines() if line}
    some = _parse_line(lines.get("some"))
    full = _parse_line(lines.get("full")) if with_full else (None, None)
    return Pressure(some_ratio=some[0], full_ratio=full[0], some_seconds=some[1], full_seconds=full[1])


def _parse_line(line: str | None) -> tuple[float | None, float | None]:
    """`some avg10=1.50 … total=123` → (0.015, 0.000123)."""
    if line is None:
        return None, None
    fields = dict(part.split("=", 1) for part in line.split() if "=" in part)
    try:
        return float(fields["avg10"]) / 100, int(fields["total"]) / 1e6
    except (KeyError, ValueError):
        return None, None


class PressureReader:
    """One PSI file. A kernel without PSI gives no readings, never zeros.

    For the whole machine "all tasks waited for a CPU" has no meaning; the kernel prints zeros, which are
    ignored.
    """

    def __init__(self, roots: Roots, resource: str) -> None:
        self._file = HeldFile(roots.proc / "pressure" / resource)
        self._with_full = resource != "cpu"

    def read(self, now: float) -> Pressure:
        raw = self._file.read(now)
        if raw is None:
            return NO_PRESSURE
        return parse_pressure(raw.decode("ascii", "replace"), with_full=self._with_full)

    def close(self) -> None:
        self._file.close()
