"""torch.compile was asked for but nothing runs compiled.

Looks at: the compile probe: used, graphs captured, failures.
Why: A model that falls back to eager pays for compiling and gains nothing; 'model compiled' in the log proves
    nothing.
Remedy: read the first graph-break reason (`TORCH_LOGS=graph_breaks`), or drop compile.
Gain: what compile would give on forward + backward.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence.compute_cost import passes_change
from monitor.advice.prediction.gain import Bounds
from monitor.advice.rule import Advice, rule
from monitor.model import units

LEFT = Bounds(low=1.0, likely=0.85, high=0.6)
"""Share of both passes' time that remains once compilation works. A literature value, never checked on a GPU
here."""


@rule(
    "compute.compile_failed",
    "Compilation failed",
    suppresses=("compute.compile_off", "compute.graph_breaks"),
)
def check(run: RunContext) -> Advice | None:
    used, failed = run.setting("compile", "used"), run.setting("compile", "failed")
    graphs = run.count("compile", "graphs")
    if used is not True or not (failed is True or graphs == 0):
        return None
    share = run.compute_share
    mode = run.setting("compile", "mode") or "default"
    return Advice(
        title=f"torch.compile (mode {mode}) is in the script but no graph was captured: the model runs "
        "eagerly",
        remedy="Run once with TORCH_LOGS=graph_breaks to see why; compile the inner module, or take it out.",
        change=f"TORCH_LOGS=graph_breaks {run.run.command or 'python train.py'}",
        evidence={"graphs": graphs, "failed": failed, "mode": mode, "compute_share": share},
        gain=LEFT.of(lambda left: passes_change(run, left)),
        because=f"compiled code would touch {units.percent(share)} of the step",
        severity="warning",
    )
