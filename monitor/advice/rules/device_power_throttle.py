"""The GPU is held back by its power limit.

Looks at: the power-cap throttle reason, the limit relative to the card's own default, clocks.
Why: At the power limit the clock falls below what the card could do. Under full load at the card's own
    default limit that is normal; with a lower limit that somebody has set, speed is given away.
Remedy: raise the limit if the cooling allows, spread jobs over cards.
Gain: the clock that was lost.
"""

from __future__ import annotations

from math import inf

from monitor.advice.context.machine import MachineContext
from monitor.advice.evidence.clocks import clock_ratio, per_gpu, throttle_advice, throttled
from monitor.advice.rule import Advice, machine_rule
from monitor.model import units
from monitor.model.gpu import Gpu

REASONS = ("sw_power_cap",)


@machine_rule("device.power_throttle", "Power throttling", suppresses=("device.clocks_low",))
def check(machine: MachineContext) -> list[Advice]:
    return per_gpu(machine, _check)


def _check(gpu: Gpu, low: float) -> Advice | None:
    reasons, ratio = throttled(gpu, REASONS), clock_ratio(gpu)
    if not reasons or (ratio is not None and ratio >= low):
        return None
    if gpu.power_limit_watts and (gpu.power_default_watts or inf) <= gpu.power_limit_watts:
        return None  # at its factory limit: normal under load
    limit = f" of {units.whole(gpu.power_limit_watts)} W" if gpu.power_limit_watts else ""
    return throttle_advice(
        gpu,
        reasons,
        f"is at its power limit{limit}",
        "Raise the power limit towards the card's maximum (if cooling and supply allow).",
        "-pl <watts>",
    )
