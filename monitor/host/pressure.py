"""Linux PSI: how much of the time tasks waited for CPU, memory or I/O.

This is the reading that tells "busy" from "too busy": load counts tasks, pressure counts lost time.
"""

from __future__ import annotations

import re

from monitor.host.procfs import Every, HeldFile, Roots
from monitor.model.host import Pressure

AVERAGED_SECONDS = 2.0
"""How often the kernel makes the averages (PSI_FREQ)."""
NO_PRESSURE = Pressure()
_LINE = re.compile(r"^(some|full) avg10=(\d+\.\d+) .*total=(\d+)$", re.MULTILINE)
"""``some avg10=1.50 avg60=… avg300=… total=123``"""


def parse_pressure(text: str, *, with_full: bool = True) -> Pressure:
    """PSI text as ratios and seconds; missing or malformed lines give None."""
    lines = {kind: (float(ratio) / 100, int(total) / 1e6) for kind, ratio, total in _LINE.findall(text)}
    some = lines.get("some", (None, None))
    full = lines.get("full", (None, None)) if with_full else (None, None)
    return Pressure(some_ratio=some[0], full_ratio=full[0], some_seconds=some[1], full_seconds=full[1])


class PressureReader:
    """One PSI file. A kernel without PSI gives no readings, never zeros.

    For the whole machine "all tasks waited for a CPU" has no meaning; the kernel prints zeros, which are
    ignored.
    """

    def __init__(self, roots: Roots, resource: str) -> None:
        self._file = HeldFile(roots.proc / "pressure" / resource, in_one_piece=True)
        self._with_full = resource != "cpu"
        self._period = Every(AVERAGED_SECONDS)
        self._last = NO_PRESSURE

    def read(self, now: float) -> Pressure:
        if self._period.due(now):
            self._last = self._read(now)
        return self._last

    def _read(self, now: float) -> Pressure:
        raw = self._file.read(now)
        if raw is None:
            return NO_PRESSURE
        return parse_pressure(raw.decode("ascii", "replace"), with_full=self._with_full)

    def close(self) -> None:
        self._file.close()
