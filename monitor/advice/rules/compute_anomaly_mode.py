"""Autograd's anomaly detection is on.

Looks at: the anomaly flag of autograd.
Why: Anomaly mode records a stack trace for every operation and checks every gradient for NaN: a debugging
    aid that makes each step several times slower.
Remedy: remove `torch.autograd.set_detect_anomaly(True)`.
Gain: forward and backward at half to a third of their time.
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
    share = run.compute_share
    return Advice(
        title=f"Anomaly detection is on: every operation records a stack trace ({percent(share)} of the "
        "step is forward and backward)",
        remedy="Remove set_detect_anomaly(True) (or keep it for the steps around a NaN only).",
        change="- torch.autograd.set_detect_anomaly(True)",
        evidence={"compute_share": share, "anomaly": True},
        what=compute_change(run, 0.45),
        low=compute_change(run, 0.75),
        high=compute_change(run, 0.3),
        because=f"tracing and NaN checks go, on {percent(share)} of the step",
        severity="warning",
    )
