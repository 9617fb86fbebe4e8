"""The hardware itself brakes the GPU.

Looks at: hardware slowdown and power-brake throttle reasons.
Why: A power brake or hardware slowdown comes from the supply, the connectors or the board: clocks drop to
    a fraction.
Remedy: check the power cables and supply, the server's power budget, the card.
Gain: the clock that was lost.
"""

from __future__ import annotations

from monitor.advice.clocks import clock_ratio, clock_speedup, throttled
from monitor.advice.context import MachineContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, machine_rule
from monitor.snapshot import Gpu

REASONS = (
    "hw_slowdown",
    "hw_power_brake_slowdown",
)


@machine_rule("device.hardware_slowdown", suppresses=("device.clocks_low",))
def check(machine: MachineContext) -> list[Advice]:
    found = [_check(gpu, machine.policy.throttle_clock_ratio) for gpu in machine.snapshot.gpus]
    return [advice for advice in found if advice is not None]


def _check(gpu: Gpu, low: float) -> Advice | None:
    reasons, ratio = throttled(gpu, REASONS), clock_ratio(gpu)
    if not reasons:
        return None
    slow = f", clock at {percent(ratio)} of its maximum" if ratio else ""
    return Advice(
        title=f"GPU {gpu.index} is braked by its hardware ({', '.join(reasons)}){slow}",
        remedy="Check the power supply, its cables and the server's power budget; then the card itself.",
        change=f"nvidia-smi -i {gpu.index} -q -d POWER,PERFORMANCE",
        evidence={
            "reasons": list(reasons),
            "clock_ratio": ratio,
            "temperature_celsius": gpu.temperature_celsius,
            "power_watts": gpu.power_watts,
            "power_limit_watts": gpu.power_limit_watts,
        },
        speedup=clock_speedup(ratio),
        severity="critical",
        gpu=gpu.uuid,
    )
