"""Deterministic algorithms are forced.

Looks at: `torch.use_deterministic_algorithms`, `cudnn.deterministic`.
Why: Deterministic kernels avoid atomics and are often slower; worth it for a bug hunt, seldom for a long
    run.
Remedy: switch them off when bit-equal results are not needed.
Gain: 1.02–1.3 times on forward + backward.
"""

from __future__ import annotations

from monitor.advice.computing import compute_change
from monitor.advice.context import RunContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, rule


@rule("compute.deterministic")
def check(run: RunContext) -> Advice | None:
    on = run.setting("deterministic_algorithms") is True or run.setting("cudnn", "deterministic") is True
    if not on or not run.has_cuda:
        return None
    share = run.compute_share
    return Advice(
        title=f"Deterministic algorithms are on ({percent(share)} of the step is compute)",
        remedy="Switch deterministic algorithms off if bit-equal results are not needed.",
        change="- torch.use_deterministic_algorithms(True)\n+ torch.use_deterministic_algorithms(False)",
        evidence={"compute_share": share, "deterministic": True},
        what=compute_change(run, 0.93),
        low=compute_change(run, 1.0),
        high=compute_change(run, 0.77),
        because=f"faster kernels become available, on {percent(share)} of the step",
        severity="hint",
    )
