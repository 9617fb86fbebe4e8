"""Figures over all scripts."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

from tests.benchmarks.device.judge import Row

GOALS = {"idle_right": 0.90, "first": 0.90, "inside": 0.85}


def figures(rows: list[Row]) -> dict[str, Any]:
    """How often idle share, cause and gain were right, and what was said about healthy runs."""
    ran = [row for row in rows if not row.skipped]
    sick = [row for row in ran if row.expected]
    judged = [row for row in ran if row.false_alarm is not None]
    return {
        "scripts": len(ran),
        "sick": len(sick),
        "healthy": len(ran) - len(sick),
        "skipped": len(rows) - len(ran),
        "failed": sum(bool(row.error) for row in ran),
        "disturbed": [row.script for row in ran if row.disturbed],
        "first_looks": sum(row.look == "first look" for row in ran),
        "idle_right": _share(row.idle_right for row in ran),
        "idle_right_sick": _share(row.idle_right for row in sick),
        "median_idle_error": _median(_idle_errors(ran)),
        "first": _share(row.first for row in sick),
        "top3": _share(row.top3 for row in sick),
        "predictions": sum(row.inside is not None for row in sick),
        "inside": _share(row.inside for row in sick),
        "inside_of_all": _share(bool(row.inside) for row in sick),
        "median_gain_error": _median(_gain_errors(sick)),
        "healthy_judged": len(judged),
        "false_alarms": sum(bool(row.false_alarm) for row in judged),
        "median_slowdown": _median(row.slowdown for row in ran if row.slowdown),
        "median_load": _median(row.load for row in ran if row.load is not None),
    }


def goals_met(summary: dict[str, Any]) -> bool:
    enough = all((summary[name] or 0.0) >= goal for name, goal in GOALS.items())
    return enough and not summary["false_alarms"] and not summary["failed"]


def _idle_errors(rows: list[Row]) -> list[float]:
    return [
        abs(row.reported_idle - row.idle)
        for row in rows
        if row.reported_idle is not None and row.idle is not None
    ]


def _gain_errors(rows: list[Row]) -> list[float]:
    return [abs(row.predicted["likely"] / row.gain - 1) for row in rows if row.predicted and row.gain]


def _share(values: Iterable[bool | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _median(values: Iterable[float]) -> float | None:
    known = list(values)
    return statistics.median(known) if known else None
