"""cuDNN may not choose its fastest algorithm although the input shapes are fixed.

Looks at: `cudnn.benchmark`, fixed input shapes, convolution time.
Why: With fixed shapes cuDNN can try its algorithms once and keep the best; without the flag it takes a
    heuristic guess.
Remedy: `torch.backends.cudnn.benchmark = True`.
Gain: Amdahl on forward + backward, 1.02–1.15 times on that part.
"""

from __future__ import annotations

from monitor.advice.computing import compute_change
from monitor.advice.context import RunContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, rule


@rule("compute.cudnn_benchmark_off")
def check(run: RunContext) -> Advice | None:
    if not run.has_cuda or run.setting("cudnn", "benchmark") is not False:
        return None
    if run.setting("shapes", "fixed") is not True or run.setting("cudnn", "deterministic") is True:
        return None
    share = run.compute_share
    return Advice(
        title=f"cudnn.benchmark is off while all batches have one shape ({percent(share)} of the step is "
        "compute)",
        remedy="Switch cudnn.benchmark on before the first forward.",
        change="+ torch.backends.cudnn.benchmark = True",
        evidence={"compute_share": share, "benchmark": False, "shapes_fixed": True},
        what=compute_change(run, 0.93),
        low=compute_change(run, 0.99),
        high=compute_change(run, 0.85),
        because=f"convolutions run at up to 1.15 times the speed, on {percent(share)} of the step",
        severity="hint",
    )
