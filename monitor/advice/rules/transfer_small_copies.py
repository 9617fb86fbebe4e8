"""Many small copies instead of a few large ones.

Looks at: copies a step and bytes a copy.
Why: Every copy has a fixed cost of ten microseconds or more; tensors moved one by one, or sample by
    sample, pay it each time.
Remedy: stack first and copy once; move the batch, not its items.
Gain: the fixed cost of the copies that go.
"""

from __future__ import annotations

from monitor.advice.context import RunContext
from monitor.advice.finding import seconds, size
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving

COPY_SECONDS = 12e-6


@rule("transfer.small_copies", suppresses=("transfer.blocking_copies", "transfer.unpinned_memory"))
def check(run: RunContext) -> Advice | None:
    copies, total = run.scalar("transfer.copies_per_step"), run.scalar("transfer.bytes_per_step")
    if not run.has_cuda or copies is None or total is None or copies < 12 or total / copies > 256 << 10:
        return None
    cost = min(run.seconds("transfer") or copies * COPY_SECONDS, run.period or 0.0)
    part = "transfer" if run.seconds("transfer") else "*"
    return Advice(
        title=f"{copies:.0f} small copies a step, {size(total / copies)} each, {seconds(cost)} together",
        remedy="Stack the tensors on the host and copy them once (in the collate function), or keep them "
        "on the GPU.",
        change="- xs = [x.to(device) for x in xs]\n+ xs = torch.stack(xs).to(device, non_blocking=True)",
        evidence={"copies_per_step": copies, "bytes_per_copy": total / copies, "transfer_seconds": cost},
        what=Change(savings=(Saving(part, 0.8 * cost, "transfer"),)),
        low=Change(savings=(Saving(part, 0.4 * cost, "transfer"),)),
        high=Change(savings=(Saving(part, cost, "transfer"),)),
        because=f"{copies:.0f} copies become one or two",
    )
