"""The GPU is held back by its power limit.

Looks at: the power-cap throttle reason, power against the limit, clocks.
Why: At the power limit the clock falls below what the card could do; on a full load a little of that is
    normal, much of it is not.
Remedy: raise the limit if the cooling allows, spread jobs over cards.
Gain: the clock that was lost.
"""

from __future__ import annotations

from monitor.advice.clocks import clock_ratio, clock_speedup, throttled
from monitor.advice.context import MachineContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, machine_rule
from monitor.snapshot import Gpu

REASONS = ("sw_power_cap",)


@machine_rule("device.power_throttle", suppresses=("device.clocks_low",))
def check(machine: MachineContext) -> list[Advice]:
    found = [_check(gpu, machine.policy.throttle_clock_ratio) for gpu in machine.snapshot.gpus]
    return [advice for advice in found if advice is not None]


def _check(gpu: Gpu, low: float) -> Advice | None:
    reasons, ratio = throttled(gpu, REASONS), clock_ratio(gpu)
    if not reasons or (ratio is not None and ratio >= low):
        return None
    slow = f", clock at {percent(ratio)} of its maximum" if ratio else ""
    return Advice(
        title=f"GPU {gpu.index} is at its power limit"
        + (f" of {gpu.power_limit_watts:.0f} W" if gpu.power_limit_watts else "")
        + slow,
        remedy="Raise the power limit towards the card's maximum (if cooling and supply allow).",
        change=f"nvidia-smi -i {gpu.index} -pl <watts>",
        evidence={
            "reasons": list(reasons),
            "clock_ratio": ratio,
            "temperature_celsius": gpu.temperature_celsius,
            "power_watts": gpu.power_watts,
            "power_limit_watts": gpu.power_limit_watts,
        },
        speedup=clock_speedup(ratio),
        severity="warning",
        gpu=gpu.uuid,
    )
