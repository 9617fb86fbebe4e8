"""The GPUs of runs, as their daemons last reported them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from monitor.fleet.api import Sample
from monitor.model.gpu import Gpu

MOST = 64
"""GPUs shown at once: a choice, about what a screen can hold."""
READINGS = (
    "utilization_ratio",
    "power_watts",
    "power_limit_watts",
    "temperature_celsius",
    "sm_clock_hertz",
    "sm_clock_max_hertz",
)
AMOUNTS = ("memory_used_bytes", "memory_total_bytes")


def cards_of(samples: Iterable[Sample]) -> tuple[Gpu, ...]:
    """In the order of machines and indices, with the machine's name before the card's."""
    found: dict[tuple[str, int, str], dict[str, float | str]] = {}
    for one in samples:
        labels, name = one.labels, one.labels.get("__name__", "").removeprefix("gpumon_gpu_")
        index = labels.get("gpu", "")
        key = (labels.get("instance", ""), int(index) if index.isdigit() else 0, labels.get("uuid", ""))
        readings = found.setdefault(key, {})
        if name == "info":
            readings["name"] = labels.get("name", "")
            readings["simulated"] = labels.get("simulated", "")
        else:
            readings[name] = one.value
    return tuple(_gpu(at, key, found[key]) for at, key in enumerate(sorted(found)))


def _gpu(at: int, key: tuple[str, int, str], readings: dict[str, float | str]) -> Gpu:
    instance, index, uuid = key
    amounts = {name: int(readings[name]) for name in AMOUNTS if name in readings}
    figures = {name: float(readings[name]) for name in READINGS if name in readings}
    node = instance.rpartition(":")[0] or instance
    name = f"{node} GPU {index} {readings.get('name', '')}".strip()
    card = Gpu(at, uuid, name, simulated=readings.get("simulated") == "true")
    return replace(card, **amounts, **figures)
