"""torch.compile was asked for but nothing runs compiled.

Looks at: the compile probe: used, graphs captured, failures.
Why: A model that falls back to eager keeps the cost of compiling and gains nothing; 'model compiled' in
    the log proves nothing.
Remedy: read the first graph-break reason (`TORCH_LOGS=graph_breaks`), or drop compile.
Gain: what compile would give on forward + backward.
"""

from __future__ import annotations

from monitor.advice.computing import compute_change
from monitor.advice.context import RunContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, rule


@rule("compute.compile_failed", suppresses=("compute.compile_off", "compute.graph_breaks"))
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
        change="+ TORCH_LOGS=graph_breaks python train.py …",
        evidence={"graphs": graphs, "failed": failed, "mode": mode, "compute_share": share},
        what=compute_change(run, 0.85),
        low=compute_change(run, 1.0),
        high=compute_change(run, 0.6),
        because=f"compiled code would touch {percent(share)} of the step",
        severity="warning" if failed is True or graphs == 0 else None,
    )
