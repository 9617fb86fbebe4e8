"""Clocks and throttling of a GPU, and what a lost clock costs."""

from __future__ import annotations

from collections.abc import Iterable

from monitor.snapshot import Gpu, Speedup


def clock_ratio(gpu: Gpu) -> float | None:
    """SM clock over its maximum, None when either is unknown."""
    if not gpu.sm_clock_hertz or not gpu.sm_clock_max_hertz:
        return None
    return min(1.0, gpu.sm_clock_hertz / gpu.sm_clock_max_hertz)


def throttled(gpu: Gpu, reasons: Iterable[str]) -> tuple[str, ...]:
    """Which of these reasons are active on a GPU that answers."""
    if gpu.state != "ok" or gpu.throttle is None:
        return ()
    return tuple(reason for reason in reasons if gpu.throttle.get(reason))


def clock_speedup(ratio: float | None) -> Speedup | None:
    """Steps follow the SM clock in so far as they are bound by compute: at most its ratio."""
    if ratio is None:
        return None
    most = min(5.0, 1.0 / max(ratio, 0.01))
    likely = 1.0 + 0.7 * (most - 1.0)
    return Speedup(
        1.0, round(likely, 3), round(most, 3), "the clock back at its maximum, on compute-bound steps"
    )
