"""Mixed precision is off on a GPU that has tensor cores.

Looks at: autocast not seen in forward, float32 model, compute share, GPU generation.
Why: Tensor cores do 16-bit matrix work several times faster and halve the memory traffic; float32 leaves
    them idle.
Remedy: `torch.autocast('cuda', dtype=torch.bfloat16)` around forward and loss (float16 with a GradScaler
    on older cards).
Gain: Amdahl on forward + backward, at 1.3–2 times on that part.
"""

from __future__ import annotations

from monitor.advice.computing import compute_change
from monitor.advice.context import RunContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, rule


@rule("compute.amp_off")
def check(run: RunContext) -> Advice | None:
    if not run.has_cuda or run.setting("precision", "autocast") is not False:
        return None
    if run.setting("model", "dtype") not in ("torch.float32", "float32"):
        return None
    share = run.compute_share
    return Advice(
        title=f"Mixed precision is off: forward and backward ({percent(share)} of the step) run in float32",
        remedy="Run forward and loss under autocast with bfloat16 (no scaler needed); watch the loss for "
        "the first epochs.",
        change='+ with torch.autocast("cuda", dtype=torch.bfloat16):\n      loss = criterion(model(x), y)',
        evidence={"compute_share": share, "autocast": False, "gpu": run.setting("gpu_name")},
        what=compute_change(run, 0.62),
        low=compute_change(run, 0.85),
        high=compute_change(run, 0.45),
        because=f"16-bit matrix work runs at 1.2–2.2 times the speed, on {percent(share)} of the step",
        severity=None,
    )
