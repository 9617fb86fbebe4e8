"""Lays out docs/benchmarks/trace.md from the figures of `tests.benchmarks.trace`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

SPEED = """`python -m tests.benchmarks.trace`, {date}: a made-up trace of {events:,} events. Median CPU time
and largest peak memory of {rounds} fresh processes, start and imports included. Aimed at: 200,000 events read
in less than 2 s and 500 MB."""
ACCURACY = """`python -m tests.benchmarks.trace --hta`, {date}: Holistic Trace Analysis {version} on its own
test traces of real cards. Shares of the time for the device, shares of the stream's idle time for the
categories, the mean over changes for the queue. Largest difference in {count} figures: **{worst:.2f}**
percentage points (per cent for a queue).

The column HTA is with `HTA_DISABLE_NS_ROUNDING=1` and without `cuda_sync` events. As shipped it shortens
every kernel by up to 2 µs, as it rounds begins up and ends down, and counts events in which the host waits as
work of the device: the last column shows what that changes."""
NOT_YET = "Not compared yet: `python -m tests.benchmarks.trace --hta --traces FOLDER`."


def page(result: dict[str, Any]) -> str:
    lines = ["# Reading profiler traces", "", SPEED.format(**result), "", *_speed(result["speed"])]
    lines += ["", "## Beside Holistic Trace Analysis", "", *_comparison(result.get("comparison"))]
    return "\n".join(lines) + "\n"


def _speed(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| what | file | CPU seconds | peak memory |"
    yield "|---|---|---|---|"
    for row in rows:
        file = f"{row['file']}, {row['mb']:.0f} MB"
        yield f"| {row['what']} | {file} | {row['seconds']:.2f} | {row['peak_mb']:.0f} MB |"


def _comparison(comparison: dict[str, Any] | None) -> Iterator[str]:
    if comparison is None:
        yield NOT_YET
        return
    rows = comparison["rows"]
    worst = max((row["off"] for row in rows if row["off"] is not None), default=0.0)
    yield ACCURACY.format(**comparison, count=len(rows), worst=worst)
    yield ""
    yield "| trace | figure | gpumon | HTA | off | HTA as shipped |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        own, exact, shipped = (_cell(row["figure"], row[key]) for key in ("gpumon", "hta", "hta_as_shipped"))
        off = "—" if row["off"] is None else f"{row['off']:.2f}"
        yield f"| {row['trace']} | {row['figure']} | {own} | {exact} | {off} | {shipped} |"


def _cell(figure: str, value: float | None) -> str:
    if value is None:
        return "—"
    return f"{value:.2f}" if "queue" in figure else f"{value * 100:.2f} %"
