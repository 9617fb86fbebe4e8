"""Autograd's anomaly detection is on.

Looks at: the anomaly flag of autograd.
Why: Anomaly mode records a stack trace for every operation and checks every gradient for NaN: a debugging
    aid that makes each step several times slower.
Remedy: remove `torch.autograd.set_detect_anomaly(True)`.
Gain: forward and backward in two thirds to a fifth of their time, depending on how forward compares with
    backward.
"""

from __future__ import annotations

from dataclasses import replace

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import edits, frameworks
from monitor.advice.evidence.compute_cost import compute_change, own_change
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import Change, scaled
from monitor.advice.rule import Advice, rule
from monitor.model import units

FASTEST_LEFT, SLOWEST_LEFT, PER_FORWARD = 0.25, 0.62, 0.15
"""Share of both passes' time that remains: the least of this kind, the value if forward is free, and how much
it drops for each time forward takes as long as backward. Measured separately on a CPU (docs/advice.md)."""
BOTH_PASSES = 0.9
"""Where forward is longer still, nearly all of it is tracing (a trace goes down to the framework's own loop,
dozens of calls deep), and both passes without it take this multiple of backward with its NaN checks."""
LEFT_UNKNOWN = 0.5
"""The same if backward was not seen."""
LEAST_GAIN_LEFT, DOUBT = 0.85, Bounds(low=1.35, likely=1.0, high=0.65)
"""The largest remaining share for the lowest gain, and factors on the remaining share. Judgement."""


@rule(
    "compute.anomaly_mode",
    "Anomaly detection",
    settings=("anomaly",),
    bonus=0.5,
    suppresses=(
        "compute.small_batch",
        "compute.python_loop",
        "compute.user_code",
        "compute.sync_every_step",
        "compute.launch_bound",
    ),
)
def check(run: RunContext) -> Advice | None:
    if run.setting("anomaly") is not True:
        return None
    share, left = run.compute_share, _left(run)
    return Advice(
        title="Anomaly detection is on: every operation records a stack trace "
        f"({units.percent(share)} of the step is forward and backward)",
        remedy="Remove set_detect_anomaly(True) (or keep it for the steps around a NaN only)."
        + frameworks.setting(run, "anomaly"),
        change=edits.first_argument(run, "anomaly", "False"),
        knobs={"anomaly": "off"},
        effect="identical",
        evidence={"compute_share": share, "anomaly": True},
        gain=DOUBT.of(lambda factor: _untraced(run, min(max(LEAST_GAIN_LEFT, left), factor * left))),
        because=f"tracing and NaN checks go, on {units.percent(share)} of the step",
        severity="warning",
    )


def _untraced(run: RunContext, left: float) -> Change:
    """On a device it is the host that traces, and every NaN check is a wait."""
    if run.lanes is None:
        return compute_change(run, left)
    tracing = scaled(own_change(run, run.forward_phases, "anomaly"), 1.0 - left)
    return replace(tracing, syncs_left=0.0)


def _left(run: RunContext) -> float:
    """Share of both passes' time that remains. Stack traces are taken in forward, at a fixed price per
    operation: if forward is long relative to backward, the operations are small and tracing is most of it."""
    *forward, backward = (run.seconds(phase) for phase in run.forward_phases)
    if backward <= 0:
        return LEFT_UNKNOWN
    ratio = sum(forward) / backward
    return max(SLOWEST_LEFT - PER_FORWARD * ratio, min(FASTEST_LEFT, BOTH_PASSES / (1.0 + ratio)))
