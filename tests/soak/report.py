"""The figures of a soak as a part of docs/reliability.md."""

from __future__ import annotations

import os
import platform

from tests.faults import page
from tests.soak.figures import MOST_GROWTH, MOST_P99_SECONDS, WARM_UP_SECONDS, Figures

MIB = 1 << 20


def render(found: Figures) -> str:
    rows = [
        ("resident memory at the end", f"{found.resident / MIB:.0f} MiB", ""),
        (
            "growth after warm-up, lowest reading of each minute",
            f"{_growth(found.growth_per_hour)} ± {found.growth_error / MIB:.1f}",
            f"≤ {MOST_GROWTH / MIB:.0f}",
        ),
        ("… of all readings, as it was judged before", _growth(found.line_growth_per_hour), ""),
        ("… of minutes 6 to 10, as it was judged at first", _growth(found.former_growth_per_hour), ""),
        ("CPU", f"{100 * found.cpu_ratio:.0f} % of a core", ""),
        ("ticks missed", f"{found.missed_ticks}", "0"),
        ("steps of the 64 ranks written", f"{found.written:,}", ""),
        ("… read, lost", f"{found.read:,}, {found.lost}", "all, 0"),
        ("short runs", f"{found.short_runs}", ""),
        ("`/metrics`, median", _ms(found.p50), ""),
        ("`/metrics`, 99th percentile", _ms(found.p99), f"< {_ms(MOST_P99_SECONDS)}"),
        ("snapshots to the slowest page", f"{found.page_events}", ""),
    ]
    table = [f"| {name} | {value} | {goal} |" for name, value, goal in rows]
    return "\n".join([_head(found), "", "| what | found | goal |", "|---|---|---|", *table])


def _head(found: Figures) -> str:
    load = os.getloadavg()[0]
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f} at the end"
    said = "All goals were met." if found.holds else "**Not all goals were met.**"
    after = f"after {WARM_UP_SECONDS / 60:.0f} min of warm-up"
    return f"Measured on {page.today()} for {found.minutes:.0f} min {after} ({machine}). {said}"


def _growth(bytes_per_hour: float) -> str:
    return f"{bytes_per_hour / MIB:+.1f} MiB/h"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
