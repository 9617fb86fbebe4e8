"""Too many step records were lost to judge the run.

Looks at: records that the writer overwrote before the reader got to them.
Why: A verdict from half of the steps may be wrong; giving none is better.
Remedy: a larger ring (`GPUMON_RING_BYTES`), or a daemon that is not starved of CPU.
Gain: none.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.rule import Advice, rule
from monitor.model import units


@rule("job.data_lost", "Lost records", steps=False)
def check(run: RunContext) -> Advice | None:
    lead = run.lead
    if lead is None or not lead.steps or lead.lost / lead.steps <= run.policy.lost_share:
        return None
    share = lead.lost / lead.steps
    return Advice(
        title=f"{units.percent(share)} of the step records were lost: no verdict on step time",
        remedy="Give the ring more room, or the reader more CPU.",
        change="GPUMON_RING_BYTES=268435456 python train.py",
        evidence={"lost": lead.lost, "steps": lead.steps, "lost_share": share},
        severity="hint",
    )
