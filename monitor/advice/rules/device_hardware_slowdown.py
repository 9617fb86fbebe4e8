"""The hardware itself slows the GPU down.

Looks at: hardware slowdown and power-brake throttle reasons.
Why: A power brake or hardware slowdown comes from the supply, the connectors or the board: clocks drop to
    a fraction.
Remedy: check the power cables and supply, the server's power budget, the card.
Gain: the clock that was lost.
"""

from __future__ import annotations

from monitor.advice.context.machine import MachineContext
from monitor.advice.evidence.clocks import per_gpu, throttle_advice, throttled
from monitor.advice.rule import Advice, machine_rule
from monitor.model.gpu import Gpu

REASONS = ("hw_slowdown", "hw_power_brake_slowdown")


@machine_rule("device.hardware_slowdown", "Hardware slowdown", suppresses=("device.clocks_low",))
def check(machine: MachineContext) -> list[Advice]:
    return per_gpu(machine, _check)


def _check(gpu: Gpu, low: float) -> Advice | None:
    reasons = throttled(gpu, REASONS)
    if not reasons:
        return None
    return throttle_advice(
        gpu,
        reasons,
        f"is slowed down by its hardware ({', '.join(reasons)})",
        "Check the power supply, its cables and the server's power budget; then the card itself.",
        "-q -d POWER,PERFORMANCE",
        severity="critical",
    )
