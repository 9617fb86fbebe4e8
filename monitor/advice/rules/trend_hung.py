"""The run has stopped making steps.

Looks at: time since the last step relative to the usual step, and the currently open phase.
Why: A deadlocked worker, a collective that one rank never entered or a stuck file system does not
    resolve itself, and the GPU stays allocated.
Remedy: look at the phase it hangs in; dump the stacks.
Gain: none.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.rule import Advice, rule
from monitor.model import units
from monitor.model.phase_names import moment
from monitor.model.policy import Policy
from monitor.model.run import Rank

CAUSES = {
    "data": "a DataLoader worker is stuck or was killed; look at its state, try num_workers=0",
    "validate": "a very long validation, or its loader is stuck",
    "checkpoint": "the file system the checkpoint goes to does not answer",
}
OVER = 3.0
"""Judgement: somebody who ends a run may just have lost patience with a long step."""
COLLECTIVES = {"backward": "a collective waits for a rank that never arrived; look at the other ranks"}


@rule("trend.hung", "Hung", steps=False, suppresses=("*.*",))
def check(run: RunContext) -> Advice | None:
    lead = run.lead
    until = run.snapshot.time if run.live else run.run.ended if run.run.interrupted else None
    if until is None or lead is None or lead.last_step_time is None or not lead.steps:
        return None
    silent = until - lead.last_step_time
    if _still(run, lead, silent) < _patience(run.policy, lead):
        return None
    phase = lead.live_phase or "other"
    cause = _cause(run, phase)
    return Advice(
        title=f"Hung {moment(phase)}: no step for {units.seconds(silent)}"
        + ("" if run.live else " until somebody ended it"),
        remedy=f"Between two steps: {cause}." if phase == "between" else f"In {phase}: {cause}.",
        change=f"py-spy dump --pid {lead.pid}" if run.live else "",
        evidence={
            "silent_seconds": silent,
            "live_phase": phase,
            "steps": lead.steps,
            "usual_step_seconds": lead.step.p50,
        },
        severity="critical",
        rank=lead.rank if len(run.run.ranks) > 1 else None,
    )


def _still(run: RunContext, lead: Rank, silent: float) -> float:
    """Seconds in which nothing at all was seen to go on: a step that is longer than others goes from phase to
    phase. Of a run that is over, that is no longer known."""
    if not run.live:
        return silent / OVER
    return silent if lead.live_seconds is None else min(silent, lead.live_seconds)


def _cause(run: RunContext, phase: str) -> str:
    """A single rank waits for no other."""
    causes = CAUSES | COLLECTIVES if len(run.run.ranks) > 1 else CAUSES
    return causes.get(phase, "dump the stacks of the process to see where it is")


def _patience(policy: Policy, rank: Rank) -> float:
    """How many seconds without a step are still normal for this run."""
    usual = policy.hung_steps * (rank.step.p95 or 0.0)
    return max(policy.hung_seconds, usual, policy.hung_longest * (rank.whole.max or 0.0))
