"""A GPU is held but does nothing.

Looks at: processes that hold the GPU, utilization near zero for minutes, no run stepping on it.
Why: A held context keeps others out; the most common waste in shared clusters is a finished or
    waiting job that was never ended.
Remedy: end the process, or free the memory (a notebook's kernel).
Gain: a whole GPU.
"""

from __future__ import annotations

from monitor.advice.context.machine import MachineContext
from monitor.advice.rule import Advice, machine_rule
from monitor.model import units
from monitor.model.gpu import Gpu


@machine_rule("job.gpu_idle", "Idle allocation")
def check(machine: MachineContext) -> list[Advice]:
    return [advice for gpu in machine.snapshot.gpus if (advice := _check(machine, gpu)) is not None]


def _check(machine: MachineContext, gpu: Gpu) -> Advice | None:
    since = machine.idle_since.get(gpu.uuid)
    if since is None or machine.snapshot.time - since < machine.policy.idle_seconds:
        return None
    stepping = any(gpu.uuid in run.gpu_uuids and run.state == "running" for run in machine.snapshot.runs)
    if stepping:
        return None
    idle = machine.snapshot.time - since
    names = {process.pid: process.name for process in machine.snapshot.processes}
    holders = [f"{process.pid} ({names.get(process.pid) or '?'})" for process in gpu.processes[:4]]
    held = sum(process.memory_bytes or 0 for process in gpu.processes)
    return Advice(
        title=f"GPU {gpu.index} has been held but idle for {units.duration(idle)}: "
        f"{', '.join(holders)} hold {units.size(held)}",
        remedy="End the process if its work is done (a notebook kernel, a finished job), or wait for what "
        "it waits for.",
        change=f"kill {gpu.processes[0].pid}" if gpu.processes else "",
        evidence={
            "idle_seconds": idle,
            "held_bytes": held,
            "pids": [p.pid for p in gpu.processes],
        },
        severity="warning",
        gpu=gpu.uuid,
    )
