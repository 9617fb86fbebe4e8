"""The model runs in float64.

Looks at: the dtype of the parameters.
Why: Double precision moves twice the bytes and computes at half the speed on a CPU (at 1/32 on most
    GPUs); it usually comes from NumPy's default, not from a decision.
Remedy: convert data and model to float32.
Gain: forward, backward and optimizer at half their time (GPU: far less).
"""

from __future__ import annotations

from monitor.advice.computing import compute_change
from monitor.advice.context import RunContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, rule


@rule("compute.double_precision", bonus=0.5, suppresses=("compute.small_batch",))
def check(run: RunContext) -> Advice | None:
    if run.setting("model", "dtype") not in ("torch.float64", "float64", "torch.double"):
        return None
    share = run.compute_share
    return Advice(
        title=f"Double precision: the model and its data are float64 ({percent(share)} of the step is "
        "forward and backward)",
        remedy="Use float32: convert NumPy arrays when tensors are made and drop .double().",
        change="- x = torch.from_numpy(array)          # float64\n+ x = torch.from_numpy(array).float()\n- "
        "model = model.double()",
        evidence={"compute_share": share, "dtype": "float64", "parameters": run.count("model", "parameters")},
        what=compute_change(run, 0.58 if not run.has_cuda else 0.2),
        low=compute_change(run, 0.85),
        high=compute_change(run, 0.42 if not run.has_cuda else 0.1),
        because=f"float32 needs about half the time, on {percent(share)} of the step",
        severity=None,
    )
