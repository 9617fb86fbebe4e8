"""cuDNN is not allowed to choose its fastest algorithm although the input shapes are fixed.

Looks at: `cudnn.benchmark`, fixed input shapes, whether the model has convolutions.
Why: With fixed shapes cuDNN can try its algorithms once and keep the best; without the flag it takes a
    heuristic guess.
Remedy: `torch.backends.cudnn.benchmark = True`.
Gain: Amdahl on forward + backward, 1.02–1.15 times on that part.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import edits
from monitor.advice.evidence.compute_cost import compute_change
from monitor.advice.prediction.gain import Bounds
from monitor.advice.rule import Advice, rule
from monitor.model import units

LEFT = Bounds(low=0.99, likely=0.93, high=0.85)
"""Share of both passes' time that remains with the fastest algorithm. A literature value, never checked on a
GPU here."""


@rule("compute.cudnn_benchmark_off", "cuDNN benchmark off", settings=("cudnn.benchmark",))
def check(run: RunContext) -> Advice | None:
    if not run.has_cuda or run.setting("cudnn", "benchmark") is not False:
        return None
    if run.setting("shapes", "fixed") is not True or run.setting("cudnn", "deterministic") is True:
        return None
    layers = run.setting("model", "layers")
    if isinstance(layers, list) and not any(str(layer).startswith("Conv") for layer in layers):
        return None
    share = run.compute_share
    return Advice(
        title="cudnn.benchmark is off while all batches have one shape "
        f"({units.percent(share)} of the step is compute)",
        remedy="Switch cudnn.benchmark on before the first forward.",
        change=edits.inserted(run, "torch.backends.cudnn.benchmark = True"),
        knobs={"cudnn.benchmark": "on"},
        effect="rounding",
        evidence={"compute_share": share, "benchmark": False, "shapes_fixed": True},
        gain=LEFT.of(lambda left: compute_change(run, left)),
        because=f"convolutions run at up to 1.15 times the speed, on {units.percent(share)} of the step",
        severity="hint",
    )
