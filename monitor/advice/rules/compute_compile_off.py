"""The model is not compiled.

Looks at: whether dynamo compiled anything, compute share, run length.
Why: `torch.compile` fuses element-wise operations and removes launch overhead; on long GPU runs it pays
    for its warm-up many times over.
Remedy: `model = torch.compile(model)`.
Gain: Amdahl on forward + backward, 1.1–1.4 times on that part.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import frameworks
from monitor.advice.evidence.compute_cost import passes_change
from monitor.advice.prediction.gain import Bounds
from monitor.advice.rule import Advice, rule
from monitor.model import units

LEFT = Bounds(low=0.97, likely=0.82, high=0.68)
"""Share of both passes' time that remains when compiled. A literature value; never checked on a GPU here."""


@rule("compute.compile_off", "Model not compiled", settings=("model.compiled", "compile.used"))
def check(run: RunContext) -> Advice | None:
    off = run.setting("compile", "used") is False or run.setting("model", "compiled") is False
    if not run.has_cuda or not off or run.setting("compile", "used") is True:
        return None
    if run.run.steps < run.policy.compile_steps:
        return None
    share = run.compute_share
    return Advice(
        title=f"The model is not compiled: forward and backward are {units.percent(share)} of the step",
        remedy="Compile the model once before the loop; the first iterations take longer and do not count."
        + frameworks.setting(run, "compile"),
        knobs={"model.compiled": "on"},
        effect="rounding",
        price="compilation in the first steps",
        evidence={"compute_share": share, "compile_used": False},
        gain=LEFT.of(lambda left: passes_change(run, left)),
        because=f"fused kernels run at 1.1–1.4 times the speed, on {units.percent(share)} of the step",
        severity="hint",
    )
