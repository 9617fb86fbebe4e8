"""The run did not end by itself.

Looks at: the state its ring was left in: failed by an exception, or killed.
Why: The last phase and the memory at the end tell an out-of-memory kill from a crash in the model.
Remedy: by the phase and the memory.
Gain: none.
"""

from __future__ import annotations

from monitor.advice.context import RunContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, rule


@rule("trend.ended_abnormally", steps=False)
def check(run: RunContext) -> Advice | None:
    state = run.run.state
    if state not in ("failed", "killed") or run.lead is None:
        return None
    phase = run.lead.live_phase
    memory = run.snapshot.host.memory
    full = memory is not None and memory.total_bytes and memory.available_bytes / memory.total_bytes < 0.05
    how = "an exception ended it" if state == "failed" else "the process was killed"
    where = f" in {phase}" if phase else ""
    return Advice(
        title=f"Ended abnormally after {run.run.steps:,} steps: {how}{where}",
        remedy="The machine was out of memory: fewer workers, a smaller batch."
        if full
        else "See the traceback above."
        if state == "failed"
        else "Killed from outside (signal, out-of-memory killer, scheduler): look at dmesg and the job's "
        "log.",
        change="dmesg | grep -i 'out of memory'" if state == "killed" else "",
        evidence={
            "state": state,
            "steps": run.run.steps,
            "live_phase": phase,
            "memory_available": percent(memory.available_bytes / memory.total_bytes)
            if memory and memory.total_bytes
            else None,
        },
        severity="warning",
    )
