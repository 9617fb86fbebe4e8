"""Activations are recomputed although memory is free.

Looks at: gradient checkpointing seen in forward, device or host memory in use; on a GPU whether the
    activations of all blocks would fit.
Why: Checkpointing trades a second forward pass for memory; with memory to spare the trade buys nothing.
Remedy: switch it off, or checkpoint only the largest blocks.
Gain: the recomputed forward, a good quarter of both passes, and each block's own overhead.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import frameworks
from monitor.advice.evidence.compute_cost import STATE_COPIES, TARGET_MEMORY, memory_used, passes_change
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import Change
from monitor.advice.rule import Advice, rule
from monitor.model import units

REPEATED = 0.27
"""The repeated forward's share of the passes, where backward takes 1.7 times a forward."""
BLOCK_SECONDS, MOST_OWN = 0.00045, 0.5
"""Checkpointing's cost per block on the host, both passes together (measured separately, docs/advice.md), and
its largest share of them."""
SAVED = Bounds(low=0.7, likely=1.0, high=1.15)
"""Factors on the cost computed below. Judgement: the ratio of the passes differs by model."""
LEAST_LEFT = 0.1
"""At least this share of both passes remains."""


@rule(
    "compute.activation_checkpointing",
    "Activation checkpointing",
    settings=("model.checkpointing",),
    bonus=0.5,
    suppresses=("compute.small_batch",),
)
def check(run: RunContext) -> Advice | None:
    if run.setting("model", "checkpointing") is not True:
        return None
    used = memory_used(run)
    if used is None or used > run.policy.memory_low or (run.has_cuda and not _fits(run)):
        return None
    share = run.compute_share
    return Advice(
        title=f"Activation checkpointing is on while only {units.percent(used)} of the memory is used: every "
        "forward is computed twice",
        remedy="Switch gradient checkpointing off (or limit it to the largest blocks): the memory for the "
        "activations is there." + frameworks.setting(run, "checkpointing"),
        effect="identical",
        price="memory for the activations of every block",
        evidence={"compute_share": share, "checkpointing": True, "memory_used_ratio": used},
        gain=SAVED.of(lambda part: _without(run, part)),
        because=f"the second forward pass is not needed, on {units.percent(share)} of the step",
    )


def _blocks(run: RunContext) -> float:
    """Checkpointed blocks per step; 0 if they were not counted."""
    return run.scalar("checkpoint.blocks_per_step") or 0.0


def _fits(run: RunContext) -> bool:
    """Whether all activations would fit into the GPU. With checkpointing the peak holds those of one block,
    so without it there are at most as many times more as there are blocks."""
    gpu, peak = (run.gpus[0] if run.gpus else None), run.scalar("cuda.max_allocated_bytes")
    blocks = _blocks(run)
    if gpu is None or not gpu.memory_total_bytes or not peak or not blocks:
        return False
    state = min(peak, STATE_COPIES * (run.count("model", "parameter_bytes") or 0))
    return state + (peak - state) * blocks <= TARGET_MEMORY * gpu.memory_total_bytes


def _without(run: RunContext, factor: float) -> Change:
    """The passes without the forward that backward repeats, and without each checkpointed block's own
    overhead (saved random state, hooks, a separate graph), which a GPU hides."""
    passes = sum(run.seconds(phase) for phase in run.forward_phases)
    own = 0.0 if run.has_cuda else min(MOST_OWN * passes, max(1.0, _blocks(run)) * BLOCK_SECONDS)
    gone = own + REPEATED * (passes - own)
    return passes_change(run, max(LEAST_LEFT, 1.0 - factor * gone / passes) if passes > 0 else 1.0)
