"""The model is not compiled.

Looks at: whether dynamo compiled anything, compute share, run length.
Why: `torch.compile` fuses element-wise operations and removes launch overhead; on long GPU runs it pays
    for its warm-up many times over.
Remedy: `model = torch.compile(model)`.
Gain: Amdahl on forward + backward, 1.1–1.4 times on that part.
"""

from __future__ import annotations

from monitor.advice.computing import compute_change
from monitor.advice.context import RunContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, rule


@rule("compute.compile_off")
def check(run: RunContext) -> Advice | None:
    if not run.has_cuda or run.setting("compile", "used") is not False:
        return None
    if run.run.steps < 500:
        return None
    share = run.compute_share
    return Advice(
        title=f"The model is not compiled: forward and backward are {percent(share)} of the step",
        remedy="Compile the model once before the loop; the first iterations take longer and do not count.",
        change="+ model = torch.compile(model)",
        evidence={"compute_share": share, "compile_used": False},
        what=compute_change(run, 0.82),
        low=compute_change(run, 0.97),
        high=compute_change(run, 0.68),
        because=f"fused kernels run at 1.1–1.4 times the speed, on {percent(share)} of the step",
        severity="hint",
    )
