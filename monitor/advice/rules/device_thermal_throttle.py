"""The GPU slows itself down because it is too hot.

Looks at: throttle reasons (software and hardware thermal slowdown), temperature, clocks.
Why: A hot GPU lowers its clocks; the same step takes longer and no change of the script helps.
Remedy: airflow, fan curve, dust, a lower power limit, another slot.
Gain: the clock that was lost.
"""

from __future__ import annotations

from monitor.advice.clocks import clock_ratio, clock_speedup, throttled
from monitor.advice.context import MachineContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, machine_rule
from monitor.snapshot import Gpu

REASONS = (
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
)


@machine_rule("device.thermal_throttle", suppresses=("device.clocks_low",))
def check(machine: MachineContext) -> list[Advice]:
    found = [_check(gpu, machine.policy.throttle_clock_ratio) for gpu in machine.snapshot.gpus]
    return [advice for advice in found if advice is not None]


def _check(gpu: Gpu, low: float) -> Advice | None:
    reasons, ratio = throttled(gpu, REASONS), clock_ratio(gpu)
    if not reasons:
        return None
    slow = f", clock at {percent(ratio)} of its maximum" if ratio else ""
    return Advice(
        title=f"GPU {gpu.index} throttles because of heat"
        + (f" at {gpu.temperature_celsius:.0f} °C" if gpu.temperature_celsius is not None else "")
        + slow,
        remedy="Cool it: airflow and fans, dust, neighbours; or lower the power limit so that it holds its "
        "clock.",
        change=f"nvidia-smi -i {gpu.index} -q -d TEMPERATURE,PERFORMANCE",
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
