"""Batches are copied from pageable memory.

Looks at: `pin_memory`, pageable copies per step, copy time.
Why: From pageable memory the driver copies twice and cannot overlap; pinned pages go straight over the
    bus.
Remedy: `DataLoader(…, pin_memory=True)`.
Gain: the exposed copy time, minus the time the bytes take from pinned memory; half of it if bytes and gaps
    are unknown.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import edits
from monitor.advice.evidence.copies import exposed_copies
from monitor.advice.prediction.gain import Bounds
from monitor.advice.rule import Advice, rule
from monitor.model import units

SAVED = Bounds(low=0.2, likely=0.5, high=0.9)
"""Share of the copies that is saved: pinned ones run at about twice the speed. Judgement, never checked on a
GPU here."""


@rule("transfer.unpinned_memory", "Pageable copies", settings=("loader.pin_memory",))
def check(run: RunContext) -> Advice | None:
    copies = exposed_copies(run, SAVED)
    share, cost = copies.share, copies.seconds
    pinned, pageable = run.setting("loader", "pin_memory"), run.scalar("transfer.pageable_per_step")
    if not run.has_cuda or pinned is not False or share < run.policy.hint_share or pageable == 0:
        return None
    return Advice(
        title="Copies from pageable memory: pin_memory is off "
        f"and copies take {units.percent(share)} of the step",
        remedy="Set pin_memory=True in the DataLoader and copy with non_blocking=True.",
        change=edits.keywords(run, "loader", pin_memory="True"),
        knobs={"loader.pin_memory": "on"},
        effect="identical",
        price="host memory that cannot be swapped out",
        evidence={"pin_memory": False, "pageable_per_step": pageable, "transfer_share": share},
        gain=copies.outcomes,
        because=f"pinned copies run at about twice the speed, of {units.seconds(cost)} a step",
    )
