"""Activations are recomputed although memory is free.

Looks at: gradient checkpointing seen in forward, device or host memory in use.
Why: Checkpointing trades a second forward pass for memory; with memory to spare the trade buys nothing.
Remedy: switch it off, or checkpoint only the largest blocks.
Gain: the recomputed forward: about 40 % of backward at most.
"""

from __future__ import annotations

from monitor.advice.computing import memory_used
from monitor.advice.context import RunContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving


@rule("compute.activation_checkpointing", bonus=0.5, suppresses=("compute.small_batch",))
def check(run: RunContext) -> Advice | None:
    if run.setting("model", "checkpointing") is not True:
        return None
    used = memory_used(run)
    if used is None or used > 0.6:
        return None
    share = run.compute_share
    return Advice(
        title=f"Activation checkpointing is on while only {percent(used)} of the memory is used: every "
        "forward is computed twice",
        remedy="Switch gradient checkpointing off (or limit it to the largest blocks): the memory for the "
        "activations is there.",
        change="- y = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)\n+ y = block(x)",
        evidence={"compute_share": share, "checkpointing": True, "memory_used_ratio": used},
        what=_again(run, 0.95),
        low=_again(run, 0.5),
        high=_again(run, 1.3),
        because=f"the second forward goes, on {percent(share)} of the step",
        severity=None,
    )


def _again(run: RunContext, factor: float) -> Change:
    """Backward without the forward it repeats."""
    repeated = min(run.seconds("forward"), 0.5 * run.seconds("backward"))
    return Change(savings=(Saving("backward", factor * repeated, "recompute"),))
