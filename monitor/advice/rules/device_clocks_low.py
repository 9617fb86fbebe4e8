"""The GPU runs at a low clock although it has work.

Looks at: SM clock against its maximum while utilization is high, no throttle reason given.
Why: Locked application clocks or a low performance state make every kernel slower.
Remedy: reset the application clocks; persistence mode.
Gain: the clock that was lost.
"""

from __future__ import annotations

from monitor.advice.clocks import clock_ratio, clock_speedup
from monitor.advice.context import MachineContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, machine_rule
from monitor.snapshot import Gpu


@machine_rule("device.clocks_low")
def check(machine: MachineContext) -> list[Advice]:
    found = [_check(gpu, machine.policy.throttle_clock_ratio - 0.2) for gpu in machine.snapshot.gpus]
    return [advice for advice in found if advice is not None]


def _check(gpu: Gpu, low: float) -> Advice | None:
    ratio = clock_ratio(gpu)
    if gpu.state != "ok" or ratio is None or ratio >= low or (gpu.utilization_ratio or 0.0) < 0.7:
        return None
    reasons = [name for name, active in (gpu.throttle or {}).items() if active]
    locked = "applications_clocks_setting" in reasons
    if reasons and not locked:
        return None
    why = "application clocks are set" if locked else "no throttle reason is given"
    return Advice(
        title=f"GPU {gpu.index} works at {percent(ratio)} of its clock ({why})",
        remedy="Reset the application clocks and switch persistence mode on.",
        change=f"nvidia-smi -i {gpu.index} -rac; nvidia-smi -i {gpu.index} -pm 1",
        evidence={"clock_ratio": ratio, "reasons": reasons, "pstate": gpu.pstate},
        speedup=clock_speedup(ratio),
        severity="warning",
        gpu=gpu.uuid,
    )
