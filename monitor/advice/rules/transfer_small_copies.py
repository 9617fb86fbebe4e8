"""Many small copies instead of a few large ones.

Looks at: copies per step and bytes per copy.
Why: Every copy has a fixed cost of ten microseconds or more; tensors moved one by one, or sample by
    sample, pay it each time.
Remedy: stack first and copy once; move the batch, not its items.
Gain: the fixed cost of the copies that are avoided.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import Change, saved
from monitor.advice.rule import Advice, rule
from monitor.model import units

COPY_SECONDS = 12e-6
"""What a copy costs the host, whatever its size. A literature value."""

SAVED = Bounds(low=0.4, likely=0.8, high=1.0)
"""Share of the copies' time that is saved when they become one or two. Judgement, never checked on a GPU
here."""
ONE_COPY = Change(copies_left=0.0)
"""The step without the cost of copies on the device."""


@rule(
    "transfer.small_copies",
    "Small copies",
    suppresses=("transfer.blocking_copies", "transfer.unpinned_memory"),
)
def check(run: RunContext) -> Advice | None:
    copies, total = run.scalar("transfer.copies_per_step"), run.scalar("transfer.bytes_per_step")
    if not run.has_cuda or copies is None or total is None or copies < run.policy.many_copies:
        return None
    if total / copies > run.policy.small_copy_bytes:
        return None
    cost = min(run.seconds("transfer") or copies * COPY_SECONDS, run.period or 0.0)
    part = "transfer" if run.seconds("transfer") else "*"
    return Advice(
        title=f"{units.whole(copies)} small copies a step, {units.size(total / copies)} each, "
        f"{units.seconds(cost)} together",
        remedy="Stack the tensors on the host and copy them once (in the collate function), or keep them "
        "on the GPU.",
        effect="identical",
        evidence={"copies_per_step": copies, "bytes_per_copy": total / copies, "transfer_seconds": cost},
        gain=SAVED.part_of(ONE_COPY if run.lanes is not None else saved(part, cost, "transfer")),
        because=f"{units.whole(copies)} copies become one or two",
    )
