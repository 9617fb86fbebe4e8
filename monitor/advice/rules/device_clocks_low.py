"""The GPU runs at a low clock although it has work.

Looks at: SM clock relative to its maximum while utilization is high and no throttle reason is given.
Why: Locked application clocks or a low performance state make every kernel slower.
Remedy: reset the application clocks; persistence mode.
Gain: the clock that was lost.
"""

from __future__ import annotations

from monitor.advice.context.machine import MachineContext
from monitor.advice.evidence.clocks import clock_ratio, clock_share, clock_speedup
from monitor.advice.rule import Advice, machine_rule
from monitor.model import units
from monitor.model.gpu import Gpu
from monitor.model.policy import Policy


@machine_rule("device.clocks_low", "Low clocks")
def check(machine: MachineContext) -> list[Advice]:
    found = [_check(gpu, machine.policy) for gpu in machine.snapshot.gpus]
    return [advice for advice in found if advice is not None]


def _check(gpu: Gpu, policy: Policy) -> Advice | None:
    ratio = clock_ratio(gpu)
    busy = (gpu.utilization_ratio or 0.0) >= policy.gpu_busy_low
    if gpu.state != "ok" or ratio is None or ratio >= policy.locked_clock_ratio or not busy:
        return None
    reasons = [name for name, active in (gpu.throttle or {}).items() if active]
    locked = "applications_clocks_setting" in reasons
    if reasons and not locked:
        return None
    why = "application clocks are set" if locked else "no throttle reason is given"
    return Advice(
        title=f"GPU {gpu.index} works at {units.percent(ratio)} of its clock ({why})",
        remedy="Reset the application clocks and switch persistence mode on.",
        change=f"nvidia-smi -i {gpu.index} -rac; nvidia-smi -i {gpu.index} -pm 1",
        evidence={"clock_ratio": ratio, "reasons": reasons, "pstate": gpu.pstate},
        speedup=clock_speedup(ratio),
        share=clock_share(gpu),
        severity="warning",
        gpu=gpu.uuid,
    )
