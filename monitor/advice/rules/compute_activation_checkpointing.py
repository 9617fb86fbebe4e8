"""Activations are recomputed although memory is free.

Looks at: gradient checkpointing seen in forward, device or host memory in use.
Why: Checkpointing trades a second forward pass for memory; with memory to spare the trade buys nothing.
Remedy: switch it off, or checkpoint only the largest blocks.
Gain: the recomputed forward, a good quarter of both passes, and what each block costs by itself.
"""

from __future__ import annotations

from monitor.advice.computing import compute_change, memory_used
from monitor.advice.context import RunContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change

REPEATED = 0.27
"""The repeated forward's share of the passes, where backward takes 1.7 times a forward."""
BLOCK_SECONDS, MOST_OWN = 0.00045, 0.5
"""What checkpointing costs a block on the host, both passes together, and its share of them at most."""


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
        what=_again(run, 1.0),
        low=_again(run, 0.6),
        high=_again(run, 1.3),
        because=f"the second forward goes, on {percent(share)} of the step",
        severity=None,
    )


def _again(run: RunContext, factor: float) -> Change:
    """The passes without the forward that backward repeats, and without what each checkpointed block
    costs by itself (random state kept, hooks, a graph of its own), which a GPU hides."""
    passes = sum(run.seconds(phase) for phase in run.forward_phases)
    spots = [spot for spot in run.hotspots if "checkpoint(" in spot.code and spot.calls]
    blocks = 0.0 if run.has_cuda else max((spot.calls or 0.0 for spot in spots), default=1.0)
    own = min(MOST_OWN * passes, blocks * BLOCK_SECONDS)
    gone = own + REPEATED * (passes - own)
    return compute_change(run, max(0.1, 1.0 - factor * gone / passes) if passes > 0 else 1.0)
