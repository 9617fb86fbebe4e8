"""Batches are copied to the GPU with blocking copies.

Looks at: time in host-to-device copies, blocking copies a step, pinned memory.
Why: A blocking copy makes the CPU wait until the batch has crossed the bus; from pinned memory and with
    `non_blocking=True` it overlaps with compute.
Remedy: `pin_memory=True` in the DataLoader and `.to(device, non_blocking=True)`.
Gain: most of the exposed copy time.
"""

from __future__ import annotations

from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving


@rule("transfer.blocking_copies", suppresses=("transfer.unpinned_memory",))
def check(run: RunContext) -> Advice | None:
    blocking, share = run.scalar("transfer.blocking_per_step"), run.share("transfer")
    if not run.has_cuda or not blocking or share < run.policy.hint_share:
        return None
    pinned = run.setting("loader", "pin_memory")
    cost = run.seconds("transfer")
    pin = " from pinned memory" if pinned is not True else ""
    return Advice(
        title=f"Blocking copies to the GPU: {blocking:.0f} a step, {seconds(cost)} ({percent(share)})",
        remedy=f"Copy with non_blocking=True{pin}, so that the copy runs beside the last step's compute.",
        change="- x = x.to(device)\n+ x = x.to(device, non_blocking=True)"
        + ("\n+ DataLoader(…, pin_memory=True)" if pinned is not True else ""),
        evidence={
            "blocking_per_step": blocking,
            "transfer_share": share,
            "transfer_seconds": cost,
            "pin_memory": pinned,
            "bytes_per_step": run.scalar("transfer.bytes_per_step"),
        },
        what=Change(savings=(Saving("transfer", 0.75 * cost, "transfer"),)),
        low=Change(savings=(Saving("transfer", 0.3 * cost, "transfer"),)),
        high=Change(savings=(Saving("transfer", cost, "transfer"),)),
        because=f"at most the {seconds(cost)} a step of exposed copies",
    )
