"""Batches are copied to the GPU with blocking copies.

Looks at: the device's gaps while a copy to it runs (if they were not seen, the time in the copy phase),
    blocking copies per step, pinned memory.
Why: A blocking copy makes the CPU wait until the batch has crossed the bus; from pinned memory and with
    `non_blocking=True` it overlaps with compute.
Remedy: `pin_memory=True` in the DataLoader and `.to(device, non_blocking=True)`.
Gain: the exposed copy time, minus the time the bytes take from pinned memory.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence.copies import exposed_copies
from monitor.advice.prediction.gain import Bounds
from monitor.advice.rule import Advice, rule
from monitor.model import units

SAVED = Bounds(low=0.3, likely=0.75, high=1.0)
"""Share of the exposed copies that is hidden. Judgement; never checked on a GPU here."""


@rule(
    "transfer.blocking_copies",
    "Blocking copies",
    suppresses=("transfer.unpinned_memory", "compute.user_code"),
)
def check(run: RunContext) -> Advice | None:
    blocking, copies = run.scalar("transfer.blocking_per_step"), exposed_copies(run, SAVED)
    if not run.has_cuda or not blocking or copies.share < run.policy.hint_share:
        return None
    pinned = run.setting("loader", "pin_memory")
    cost, share = copies.seconds, copies.share
    pin = " from pinned memory" if pinned is not True else ""
    return Advice(
        title=f"Blocking copies to the GPU: {units.whole(blocking)} a step, "
        f"{units.seconds(cost)} ({units.percent(share)})",
        remedy=f"Copy with non_blocking=True{pin}, so that it overlaps with the previous step's compute.",
        knobs={"loader.pin_memory": "on", "transfer.non_blocking": "on"},
        effect="identical",
        evidence={
            "blocking_per_step": blocking,
            "transfer_share": share,
            "transfer_seconds": cost,
            "pin_memory": pinned,
            "bytes_per_step": run.scalar("transfer.bytes_per_step"),
        },
        gain=copies.outcomes,
        because=f"at most the {units.seconds(cost)} a step of exposed copies",
    )
