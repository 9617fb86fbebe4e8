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

SLOW = ("Conv", "LSTM", "GRU", "RNN")


@rule("compute.double_precision", bonus=0.5, suppresses=("compute.small_batch",))
def check(run: RunContext) -> Advice | None:
    if run.setting("model", "dtype") not in ("torch.float64", "float64", "torch.double"):
        return None
    share, left = run.compute_share, _left(run)
    return Advice(
        title=f"Double precision: the model and its data are float64 ({percent(share)} of the step is "
        "forward and backward)",
        remedy="Use float32: convert NumPy arrays when tensors are made and drop .double().",
        change="- x = torch.from_numpy(array)          # float64\n+ x = torch.from_numpy(array).float()\n- "
        "model = model.double()",
        evidence={"compute_share": share, "dtype": "float64", "parameters": run.count("model", "parameters")},
        what=compute_change(run, left),
        low=compute_change(run, min(0.9, 1.5 * left)),
        high=compute_change(run, 0.7 * left),
        because=f"float32 needs about {percent(left)} of the time, on {percent(share)} of the step",
        severity=None,
    )


def _left(run: RunContext) -> float:
    """Share of both passes that is left: half the bytes and twice the lanes, on what is not the overhead of
    each operation; convolutions and recurrent layers have no fast kernels for float64 at all."""
    if run.has_cuda:
        return 0.2
    passes = sum(run.seconds(phase) for phase in run.forward_phases)
    overhead = 2 * (run.count("model", "modules") or 0) * run.policy.op_seconds_cpu
    fixed = min(0.9, max(0.0, overhead / passes)) if passes > 0 else 0.0
    layers = run.setting("model", "layers")
    slow = isinstance(layers, list) and any(str(layer).startswith(SLOW) for layer in layers)
    return fixed + (1.0 - fixed) * (0.42 if slow else 0.5)
