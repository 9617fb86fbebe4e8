"""TF32 is off on an Ampere or newer GPU.

Looks at: matmul and cuDNN TF32 flags, compute capability, autocast, whether tensor cores work.
Why: TF32 runs float32 matrix products on tensor cores with the range of float32; without it, they take the
    slow path.
Remedy: `torch.set_float32_matmul_precision('high')` once at the start.
Gain: Amdahl on the matrix products, 1.1–1.5 times on that part.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import edits
from monitor.advice.evidence.compute_cost import ampere, matrix_change, tensor_cores_work
from monitor.advice.prediction.gain import Bounds
from monitor.advice.rule import Advice, rule
from monitor.model import units

LEFT = Bounds(low=0.92, likely=0.75, high=0.55)
"""Share of both passes' time that remains with TF32. A literature value; never checked on a GPU here."""


@rule("compute.tf32_off", "TF32 off", settings=("precision.matmul_tf32", "precision.matmul_precision"))
def check(run: RunContext) -> Advice | None:
    if not run.has_cuda or run.setting("precision", "matmul_tf32") is not False:
        return None
    if run.setting("precision", "autocast") is True or not ampere(run):
        return None
    if tensor_cores_work(run):
        return None  # without TF32 and 16 bits they could not
    share = run.compute_share
    return Advice(
        title=f"TF32 is off: float32 matrix products ({units.percent(share)} of the step) "
        "do not use the tensor cores",
        remedy="Allow TF32 for matrix products and cuDNN, once at the start of the script.",
        change=edits.inserted(
            run,
            'torch.set_float32_matmul_precision("high")',
            "torch.backends.cudnn.allow_tf32 = True",
        ),
        knobs={"precision.matmul_tf32": "on"},
        effect="rounding",
        price="products of float32 with about three decimal digits",
        evidence={"compute_share": share, "matmul_tf32": False, "gpu": run.setting("gpu_name")},
        gain=matrix_change(run, LEFT),
        because=f"float32 products run at 1.1–1.8 times the speed, on {units.percent(share)} of the step",
    )
