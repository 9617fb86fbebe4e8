"""Deterministic algorithms are forced.

Looks at: `torch.use_deterministic_algorithms`, `cudnn.deterministic`.
Why: Deterministic kernels avoid atomics and are often slower; worth it for a bug hunt, seldom for a long
    run.
Remedy: switch them off when bit-equal results are not needed.
Gain: 1.02–1.3 times on forward + backward.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import edits
from monitor.advice.evidence.compute_cost import compute_change
from monitor.advice.prediction.gain import Bounds
from monitor.advice.rule import Advice, rule
from monitor.model import units

LEFT = Bounds(low=1.0, likely=0.93, high=0.77)
"""Share of both passes' time that remains with the kernels that become available. A literature value, never
checked on a GPU here."""


@rule(
    "compute.deterministic",
    "Deterministic algorithms",
    settings=("cudnn.deterministic", "deterministic_algorithms"),
)
def check(run: RunContext) -> Advice | None:
    on = run.setting("deterministic_algorithms") is True or run.setting("cudnn", "deterministic") is True
    if not on or not run.has_cuda:
        return None
    share = run.compute_share
    return Advice(
        title=f"Deterministic algorithms are on ({units.percent(share)} of the step is compute)",
        remedy="Switch deterministic algorithms off if bit-equal results are not needed.",
        change=edits.first_argument(run, "deterministic", "False"),
        effect="rounding",
        price="two runs are no longer bit for bit the same",
        evidence={"compute_share": share, "deterministic": True},
        gain=LEFT.of(lambda left: compute_change(run, left)),
        because=f"faster kernels become available, on {units.percent(share)} of the step",
        severity="hint",
    )
