"""Batches are copied from pageable memory.

Looks at: `pin_memory`, pageable copies a step, copy time.
Why: From pageable memory the driver copies twice and cannot overlap; pinned pages go straight over the
    bus.
Remedy: `DataLoader(…, pin_memory=True)`.
Gain: half of the exposed copy time.
"""

from __future__ import annotations

from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving


@rule("transfer.unpinned_memory")
def check(run: RunContext) -> Advice | None:
    share, cost = run.share("transfer"), run.seconds("transfer")
    pinned, pageable = run.setting("loader", "pin_memory"), run.scalar("transfer.pageable_per_step")
    if not run.has_cuda or pinned is not False or share < run.policy.hint_share or pageable == 0:
        return None
    return Advice(
        title=f"Copies from pageable memory: pin_memory is off and copies take {percent(share)} of the step",
        remedy="Set pin_memory=True in the DataLoader and copy with non_blocking=True.",
        change="- DataLoader(…)\n+ DataLoader(…, pin_memory=True)",
        evidence={"pin_memory": False, "pageable_per_step": pageable, "transfer_share": share},
        what=Change(savings=(Saving("transfer", 0.5 * cost, "transfer"),)),
        low=Change(savings=(Saving("transfer", 0.2 * cost, "transfer"),)),
        high=Change(savings=(Saving("transfer", 0.9 * cost, "transfer"),)),
        because=f"pinned copies run at about twice the speed, of {seconds(cost)} a step",
    )
