"""Mixed precision is off on a GPU that has tensor cores.

Looks at: autocast not seen in forward, float32 model, compute share, the share of matrix kernels.
Why: Tensor cores do 16-bit matrix work several times faster and halve the memory traffic; float32 leaves
    them idle.
Remedy: `torch.autocast('cuda', dtype=torch.bfloat16)` around forward and loss (float16 with a GradScaler
    on older cards).
Gain: Amdahl on the matrix products, which run 1.3–2 times as fast.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import frameworks
from monitor.advice.evidence.compute_cost import kernels, matrix_change
from monitor.advice.prediction.gain import Bounds
from monitor.advice.rule import Advice, rule
from monitor.model import units

LEFT = Bounds(low=0.85, likely=0.62, high=0.45)
"""Share of both passes' time that remains in 16 bits. A literature value; never checked on a GPU here."""


@rule("compute.amp_off", "Mixed precision off", settings=("precision.autocast",))
def check(run: RunContext) -> Advice | None:
    if not run.has_cuda or run.setting("precision", "autocast") is not False:
        return None
    if run.setting("model", "dtype") not in ("torch.float32", "float32"):
        return None
    share, seen = run.compute_share, kernels(run)
    return Advice(
        title="Mixed precision is off: forward and backward "
        f"({units.percent(share)} of the step) run in float32",
        remedy="Run forward and loss under autocast with bfloat16 (no scaler needed); watch the loss for "
        "the first epochs." + frameworks.setting(run, "amp"),
        knobs={"precision.autocast": "bf16"},
        effect="changes_training",
        price="activations in 16 bits: about three decimal digits",
        avoid="float16 without a gradient scaler; bfloat16 needs none.",
        evidence={
            "compute_share": share,
            "matrix_kernels_share": seen.matrix if seen else None,
            "autocast": False,
            "gpu": run.setting("gpu_name"),
        },
        gain=matrix_change(run, LEFT),
        because=f"16-bit matrix work runs at 1.2–2.2 times the speed, on {units.percent(share)} of the step",
    )
