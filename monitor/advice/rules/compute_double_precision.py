"""The model runs in float64, or a noticeable part of its passes does.

Looks at: the dtype of the parameters, and of what the functions on hot lines return.
Why: Double precision moves twice the bytes and computes at half the speed on a CPU (at 1/32 on most
    GPUs); it usually comes from NumPy's default, not from a decision.
Remedy: convert data and model to float32.
Gain: forward, backward and optimizer in half their time (GPU: far less).
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import hot_lines
from monitor.advice.evidence.compute_cost import compute_change
from monitor.advice.prediction.gain import Bounds
from monitor.advice.rule import Advice, rule
from monitor.model import units

SLOW = ("Conv", "LSTM", "GRU", "RNN")
"""Layers without fast kernels for float64."""
SLOW_LEFT, DENSE_LEFT, GPU_LEFT = 0.42, 0.5, 0.2
"""Share of the arithmetic that remains in float32: for such layers, for others, and on a GPU. On a CPU
measured separately (docs/advice.md); on a GPU a literature value."""
SECOND_ORDER = "LBFGS"
"""Its curvature pairs and line search are small differences: in float32 it is another training, and mostly a
worse one."""
MOST_FIXED = 0.9
"""At most this share of both passes is overhead of the operations."""
LEAST_GAIN_LEFT, DOUBT = 0.9, Bounds(low=1.5, likely=1.0, high=0.7)
"""The largest remaining share for the lowest gain, and factors on the remaining share. Judgement."""


@rule(
    "compute.double_precision",
    "Double precision",
    settings=("model.dtype",),
    bonus=0.5,
    suppresses=("compute.small_batch",),
)
def check(run: RunContext) -> Advice | None:
    if run.setting("optimizer", "kind") == SECOND_ORDER:
        return None
    if run.setting("model", "dtype") not in ("torch.float64", "float64", "torch.double"):
        return _in_part(run)
    share, left = run.compute_share, _left(run)
    return Advice(
        title=f"Double precision: the model and its data are float64 ({units.percent(share)} of the step is "
        "forward and backward)",
        remedy="Use float32: convert NumPy arrays when tensors are made and drop .double().",
        effect="rounding",
        price="seven decimal digits instead of sixteen",
        avoid="float32 where small differences of large numbers matter: keep those sums in float64.",
        evidence={"compute_share": share, "dtype": "float64", "parameters": run.count("model", "parameters")},
        gain=DOUBT.of(lambda factor: compute_change(run, min(max(LEAST_GAIN_LEFT, left), factor * left))),
        because=f"float32 needs about {units.percent(left)} of the time, "
        f"on {units.percent(share)} of the step",
    )


def _in_part(run: RunContext) -> Advice | None:
    """Functions of the forward pass that compute in float64 though the weights are not: a table or a grid
    made by NumPy is enough. What one of them hands on makes the next one double, too."""
    found = [spot for spot in run.hotspots if spot.double and spot.phase in run.forward_phases]
    spot = max(found, key=run.hot_seconds, default=None)
    forward = sum(run.seconds(phase) for phase in run.forward_phases if phase != "backward")
    if spot is None or forward <= 0.0:
        return None
    part = min(1.0, sum(map(run.hot_seconds, found)) / forward)
    share = part * run.compute_share
    if share < run.policy.loop_share:
        return None
    left = GPU_LEFT if run.has_cuda else DENSE_LEFT
    return Advice(
        title=f"Double precision in part of the model: {spot.text} and what follows compute in float64 "
        f"({units.percent(share)} of the step with its backward)",
        remedy="Use float32 there: look for a table, a grid or a constant made from a NumPy array, and "
        "convert it where the tensor is made (`.float()`, `dtype=torch.float32`).",
        effect="rounding",
        price="seven decimal digits instead of sixteen",
        avoid="float32 where small differences of large numbers matter: keep those sums in float64.",
        evidence={"double_share": share, "dtype": "float64", **hot_lines.evidence(run, spot)},
        gain=DOUBT.of(lambda factor: compute_change(run, 1.0 - part * (1.0 - min(1.0, factor * left)))),
        share=share,
        because=f"float32 needs about {units.percent(left)} of the time",
    )


def _left(run: RunContext) -> float:
    """Share of both passes' time that remains: half the bytes and twice the lanes, except for each
    operation's overhead; convolutions and recurrent layers have no fast kernels for float64 at all."""
    if run.has_cuda:
        return GPU_LEFT
    passes = sum(run.seconds(phase) for phase in run.forward_phases)
    overhead = 2 * (run.count("model", "modules") or 0) * run.policy.op_seconds_cpu
    fixed = min(MOST_FIXED, max(0.0, overhead / passes)) if passes > 0 else 0.0
    layers = run.setting("model", "layers")
    slow = isinstance(layers, list) and any(str(layer).startswith(SLOW) for layer in layers)
    return fixed + (1.0 - fixed) * (SLOW_LEFT if slow else DENSE_LEFT)
