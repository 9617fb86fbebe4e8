"""Autograd's anomaly detection is on.

Looks at: the anomaly flag of autograd.
Why: Anomaly mode records a stack trace for every operation and checks every gradient for NaN: a debugging
    aid that makes each step several times slower.
Remedy: remove `torch.autograd.set_detect_anomaly(True)`.
Gain: forward and backward at two thirds to a fifth of their time, by how forward compares with backward.
"""

from __future__ import annotations

from monitor.advice.computing import compute_change
from monitor.advice.context import RunContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, rule


@rule(
    "compute.anomaly_mode",
    bonus=0.5,
    suppresses=("compute.small_batch", "compute.python_loop", "compute.user_code"),
)
def check(run: RunContext) -> Advice | None:
    if run.setting("anomaly") is not True:
        return None
    share, left = run.compute_share, _left(run)
    return Advice(
        title=f"Anomaly detection is on: every operation records a stack trace ({percent(share)} of the "
        "step is forward and backward)",
        remedy="Remove set_detect_anomaly(True) (or keep it for the steps around a NaN only).",
        change="- torch.autograd.set_detect_anomaly(True)",
        evidence={"compute_share": share, "anomaly": True},
        what=compute_change(run, left),
        low=compute_change(run, min(0.85, 1.45 * left)),
        high=compute_change(run, 0.65 * left),
        because=f"tracing and NaN checks go, on {percent(share)} of the step",
        severity="warning",
    )


def _left(run: RunContext) -> float:
    """Share of both passes that is left. The stack traces are taken in forward, a fixed price an operation:
    where forward is long against backward, the operations are small and tracing is most of it."""
    forward, backward = (run.seconds(phase) for phase in run.forward_phases)
    if backward <= 0:
        return 0.5
    return max(0.25, 0.62 - 0.15 * forward / backward)
