"""Other processes on the machine take the cores this run needs.

Looks at: CPU of processes outside the run, CPU pressure.
Why: A training loop launches work from one thread; when that thread waits for a core, the GPU waits too.
Remedy: move the other jobs, or pin this one to its own cores.
Gain: the pressure's share of the time, at most.
"""

from __future__ import annotations

from monitor.advice.context import RunContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change


@rule("compute.contention")
def check(run: RunContext) -> Advice | None:
    cpu = run.snapshot.host.cpu
    if not run.live or cpu is None or cpu.utilization_ratio is None or not run.processes:
        return None
    known = [process.cpu_ratio for process in run.processes if process.cpu_ratio is not None]
    if not known:
        return None
    other = cpu.utilization_ratio - sum(known) / cpu.cores
    pressure = cpu.pressure.some_ratio
    if other < run.policy.other_cpu or cpu.utilization_ratio < run.policy.cpu_full or (pressure or 0.0) < 0.2:
        return None
    lasting = len(run.history) >= 30 and run.other_cores >= 0.6 * cpu.cores
    heavy = lasting and other >= 0.6 and (pressure or 0.0) >= 0.5
    waited = min(0.5, pressure or 0.0)
    return Advice(
        title=f"Other processes use {percent(other)} of all cores; tasks wait for a core "
        f"{percent(pressure or 0)} of the time",
        remedy="Move the other jobs away, or give this one cores of its own.",
        change=f"+ taskset -c 0-{max(0, cpu.cores // 2 - 1)} {run.run.command or 'python train.py'}",
        evidence={"other_cpu_ratio": other, "cpu_pressure_ratio": pressure, "cores": cpu.cores},
        what=Change(everything=1.0 - 0.5 * waited),
        low=Change(everything=1.0),
        high=Change(everything=1.0 - waited),
        because=f"tasks wait for a core {percent(pressure or 0.0)} of the time",
        severity="warning" if heavy else "hint",
    )
