"""The run has stopped making steps.

Looks at: time since the last step against the usual step, and the phase that is open now.
Why: A deadlocked worker, a collective one rank never entered or a stuck file system does not end by
    itself, and the GPU stays allocated.
Remedy: look at the phase it hangs in; dump the stacks.
Gain: none.
"""

from __future__ import annotations

from monitor.advice.context import RunContext
from monitor.advice.finding import seconds
from monitor.advice.rule import Advice, rule

CAUSES = {
    "data": "a DataLoader worker is stuck or was killed: look at its state, try num_workers=0",
    "backward": "a collective waits for a rank that never came: look at the other ranks",
    "validate": "a very long validation, or its loader is stuck",
    "checkpoint": "the file system the checkpoint goes to does not answer",
}


@rule("trend.hung", steps=False, suppresses=("*.*",))
def check(run: RunContext) -> Advice | None:
    lead = run.lead
    if not run.live or lead is None or lead.last_step_time is None or not lead.steps:
        return None
    silent = run.snapshot.time - lead.last_step_time
    longest = max(run.policy.hung_seconds, 10 * (lead.step.p95 or 0.0), 3 * (lead.whole.max or 0.0))
    if silent < longest:
        return None
    phase = lead.live_phase or "other"
    return Advice(
        title=f"Hung: no step for {seconds(silent)}, in {phase} for {seconds(lead.live_seconds or silent)}",
        remedy=f"In {phase}: {CAUSES.get(phase, 'dump the stacks of the process to see where it is')}.",
        change=f"py-spy dump --pid {lead.pid}",
        evidence={
            "silent_seconds": silent,
            "live_phase": phase,
            "steps": lead.steps,
            "usual_step": lead.step.p50,
        },
        severity="critical",
        rank=lead.rank if len(run.run.ranks) > 1 else None,
    )
