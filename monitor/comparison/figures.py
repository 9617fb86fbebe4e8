"""The figures of two runs side by side, in the order people ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from monitor.comparison.compare_runs import Comparison
from monitor.comparison.rates import ratio
from monitor.model.units import gain, number, percent, seconds, size, whole


class Figure(NamedTuple):
    """One line: both values as text, and B relative to A."""

    name: str
    a: str
    b: str
    change: str
    main: bool
    """One of the four that show whether a change was worth it."""


def figures(found: Comparison) -> Iterator[Figure]:
    a, b = found.a, found.b
    rows: tuple[tuple[str, float | None, float | None, Callable[[float | None], str], bool], ...] = (
        ("GPU use", a.gpu_utilization_ratio, b.gpu_utilization_ratio, percent, True),
        ("samples/s", a.samples_per_second, b.samples_per_second, number, True),
        ("epoch time", a.epoch_seconds, b.epoch_seconds, seconds, True),
        ("GPU memory", a.device_memory_bytes, b.device_memory_bytes, size, True),
        ("host memory", a.rss_bytes, b.rss_bytes, size, a.device_memory_bytes is None),
        ("steps/s", a.steps_per_second, b.steps_per_second, number, found.unit == "steps/s"),
        ("step p50", a.step_p50_seconds, b.step_p50_seconds, seconds, False),
        ("step p95", a.step_p95_seconds, b.step_p95_seconds, seconds, False),
        ("GPU starved", a.starved_ratio, b.starved_ratio, percent, False),
        ("in stalls", a.stall_share, b.stall_share, percent, False),
        ("steps", float(a.steps), float(b.steps), whole, False),
    )
    for name, one, two, text, main in rows:
        yield Figure(name, text(one), text(two), gain(ratio(one, two)), main)
