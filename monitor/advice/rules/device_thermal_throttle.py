"""The GPU slows itself down because it is too hot.

Looks at: throttle reasons (software and hardware thermal slowdown), temperature, clocks.
Why: A hot GPU lowers its clocks; the same step takes longer and no change of the script helps.
Remedy: airflow, fan curve, dust, a lower power limit, another slot.
Gain: the clock that was lost.
"""

from __future__ import annotations

from monitor.advice.context.machine import MachineContext
from monitor.advice.evidence.clocks import per_gpu, throttle_advice, throttled
from monitor.advice.rule import Advice, machine_rule
from monitor.model import units
from monitor.model.gpu import Gpu

REASONS = ("sw_thermal_slowdown", "hw_thermal_slowdown")


@machine_rule("device.thermal_throttle", "Thermal throttling", suppresses=("device.clocks_low",))
def check(machine: MachineContext) -> list[Advice]:
    return per_gpu(machine, _check)


def _check(gpu: Gpu, low: float) -> Advice | None:
    reasons = throttled(gpu, REASONS)
    if not reasons:
        return None
    heat = f" at {units.whole(gpu.temperature_celsius)} °C" if gpu.temperature_celsius is not None else ""
    return throttle_advice(
        gpu,
        reasons,
        f"throttles because of heat{heat}",
        "Cool it: airflow and fans, dust, neighbours; or lower the power limit so that it holds its clock.",
        "-q -d TEMPERATURE,PERFORMANCE",
    )
