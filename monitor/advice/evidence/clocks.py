"""Clocks and throttling of a GPU, and what a lowered clock costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from monitor.advice.context.machine import MachineContext
from monitor.advice.prediction.gain import speedup
from monitor.advice.rule import Advice
from monitor.model import units
from monitor.model.finding import Severity, Speedup
from monitor.model.gpu import Gpu

COMPUTE_BOUND = 0.7
"""Share of a lost clock that returns as speed. Judgement: memory-bound kernels do not follow the SM clock;
never measured on a GPU here."""
MOST_GAIN = 5.0
"""A clock below a fifth of its maximum means an idle card, not a slow one."""


def clock_ratio(gpu: Gpu) -> float | None:
    """SM clock relative to its maximum; None if either is unknown."""
    if not gpu.sm_clock_hertz or not gpu.sm_clock_max_hertz:
        return None
    return min(1.0, gpu.sm_clock_hertz / gpu.sm_clock_max_hertz)


def throttled(gpu: Gpu, reasons: Iterable[str]) -> tuple[str, ...]:
    """Which of these reasons are active, on a GPU that answers."""
    if gpu.state != "ok" or gpu.throttle is None:
        return ()
    return tuple(reason for reason in reasons if gpu.throttle.get(reason))


def clock_speedup(ratio: float | None) -> Speedup | None:
    """Steps follow the SM clock as far as they are compute-bound: at most in proportion."""
    if ratio is None:
        return None
    most = min(MOST_GAIN, 1.0 / ratio)
    likely = 1.0 + COMPUTE_BOUND * (most - 1.0)
    return speedup(1.0, likely, most, "the clock back at its maximum, on compute-bound steps")


def clock_share(gpu: Gpu) -> float:
    """Share of the time a lowered clock can cost: only a busy card loses anything by it."""
    return (gpu.utilization_ratio or 0.0) * (1.0 - (clock_ratio(gpu) or 1.0))


def per_gpu(machine: MachineContext, check: Callable[[Gpu, float], Advice | None]) -> list[Advice]:
    """What `check(gpu, lowest clock ratio)` says about each GPU."""
    found = (check(gpu, machine.policy.throttle_clock_ratio) for gpu in machine.snapshot.gpus)
    return [advice for advice in found if advice is not None]


def throttle_advice(
    gpu: Gpu, reasons: Sequence[str], title: str, remedy: str, change: str, severity: Severity = "warning"
) -> Advice:
    """Advice about a throttled GPU, with the readings that all such findings show."""
    ratio = clock_ratio(gpu)
    slow = f", clock at {units.percent(ratio)} of its maximum" if ratio else ""
    return Advice(
        title=f"GPU {gpu.index} {title}{slow}",
        remedy=remedy,
        change=f"nvidia-smi -i {gpu.index} {change}",
        evidence={
            "reasons": list(reasons),
            "clock_ratio": ratio,
            "temperature_celsius": gpu.temperature_celsius,
            "power_watts": gpu.power_watts,
            "power_limit_watts": gpu.power_limit_watts,
        },
        speedup=clock_speedup(ratio),
        share=clock_share(gpu),
        severity=severity,
        gpu=gpu.uuid,
    )
