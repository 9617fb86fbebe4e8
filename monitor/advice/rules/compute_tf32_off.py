"""TF32 is off on an Ampere or newer GPU.

Looks at: matmul and cuDNN TF32 flags, compute capability, autocast.
Why: TF32 runs float32 matrix products on tensor cores with the range of float32; off, they run on the
    slow path.
Remedy: `torch.set_float32_matmul_precision('high')` once at the start.
Gain: Amdahl on forward + backward, 1.1–1.5 times on that part.
"""

from __future__ import annotations

from monitor.advice.computing import ampere, compute_change
from monitor.advice.context import RunContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, rule


@rule("compute.tf32_off")
def check(run: RunContext) -> Advice | None:
    if not run.has_cuda or run.setting("precision", "matmul_tf32") is not False:
        return None
    if run.setting("precision", "autocast") is True or not ampere(run):
        return None
    share = run.compute_share
    return Advice(
        title=f"TF32 is off: float32 matrix products ({percent(share)} of the step) do not use the tensor "
        "cores",
        remedy="Allow TF32 for matrix products and cuDNN, once at the start of the script.",
        change='+ torch.set_float32_matmul_precision("high")\n+ torch.backends.cudnn.allow_tf32 = True',
        evidence={"compute_share": share, "matmul_tf32": False, "gpu": run.setting("gpu_name")},
        what=compute_change(run, 0.75),
        low=compute_change(run, 0.92),
        high=compute_change(run, 0.55),
        because=f"float32 products run at 1.1–1.8 times the speed, on {percent(share)} of the step",
        severity=None,
    )
