"""The GPU is held back by its power limit.

Looks at: the power-cap throttle reason, power against the limit, clocks.
Why: At the power limit the clock falls below what the card could do; on a full load a little of that is
    normal, much of it is not.
Remedy: raise the limit if the cooling allows, spread jobs over cards.
Gain: the clock that was lost.
"""

from __future__ import annotations

from monitor.advice.clocks import clock_ratio, per_gpu, throttle_advice, throttled
from monitor.advice.context import MachineContext
from monitor.advice.rule import Advice, machine_rule
from monitor.snapshot import Gpu

REASONS = ("sw_power_cap",)


@machine_rule("device.power_throttle", suppresses=("device.clocks_low",))
def check(machine: MachineContext) -> list[Advice]:
    return per_gpu(machine, _check)


def _check(gpu: Gpu, low: float) -> Advice | None:
    reasons, ratio = throttled(gpu, REASONS), clock_ratio(gpu)
    if not reasons or (ratio is not None and ratio >= low):
        return None
    limit = f" of {gpu.power_limit_watts:.0f} W" if gpu.power_limit_watts else ""
    return throttle_advice(
        gpu,
        reasons,
        f"is at its power limit{limit}",
        "Raise the power limit towards the card's maximum (if cooling and supply allow).",
        "-pl <watts>",
    )
