"""Autocast to float16 on a CPU, which mostly has no arithmetic for it.

Looks at: the device of the model, the type autocast was entered with.
Why: Few CPUs calculate in float16; the others convert every operand to float32 and back, or leave the fast
    kernels altogether. A script made for a GPU then runs slower than without autocast.
Remedy: no autocast on a CPU, or bfloat16 where the CPU has instructions for it.
Gain: not predicted: it depends on the CPU and the layers.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.rule import Advice, rule
from monitor.model import units


@rule("compute.cpu_float16", "float16 on a CPU", settings=("precision.autocast_dtype",))
def check(run: RunContext) -> Advice | None:
    if run.has_cuda or run.setting("device") != "cpu" or run.setting("precision", "autocast") is not True:
        return None
    if (
        run.setting("precision", "autocast_dtype") != "float16"
        or run.compute_share < run.policy.dominant_share
    ):
        return None
    return Advice(
        title="Autocast to float16 on a CPU: most CPUs have no fast arithmetic for it, and "
        f"{units.percent(run.compute_share)} of the step is forward and backward",
        remedy="Leave autocast out on a CPU (`enabled=False`), or use bfloat16; compare both: it depends "
        "on the CPU.",
        effect="changes_training",
        price="without autocast, twice the memory for activations",
        evidence={"compute_share": run.compute_share, "autocast_dtype": "float16"},
    )
