"""The compiled model is cut into many graphs.

Looks at: dynamo's graph-break counter against the graphs captured.
Why: At every break the compiled code returns to Python: fusion ends there, and CUDA graphs cannot span
    it.
Remedy: remove `.item()`, prints and data-dependent branches from forward; `fullgraph=True` shows the
    first.
Gain: a small part of forward + backward per break.
"""

from __future__ import annotations

from monitor.advice.computing import compute_change
from monitor.advice.context import RunContext
from monitor.advice.finding import percent
from monitor.advice.rule import Advice, rule


@rule("compute.graph_breaks")
def check(run: RunContext) -> Advice | None:
    counted = run.scalar("dynamo.graph_breaks")
    breaks = int(counted) if counted is not None else run.count("compile", "graph_breaks")
    graphs = run.count("compile", "graphs")
    if not breaks or run.setting("compile", "used") is False:
        return None
    share = run.compute_share
    return Advice(
        title=f"{breaks} graph break{'s'[: breaks > 1]} in the compiled model ({graphs or 'some'} graphs "
        "instead of one)",
        remedy="Find the first with torch.compile(fullgraph=True) and take the print, .item() or branch "
        "out of forward.",
        change="- model = torch.compile(model)\n+ model = torch.compile(model, fullgraph=True)  # names "
        "the line that breaks",
        evidence={"graph_breaks": breaks, "graphs": graphs, "compute_share": share},
        what=compute_change(run, 1.0 - min(0.2, 0.02 * breaks)),
        low=compute_change(run, 1.0),
        high=compute_change(run, 1.0 - min(0.4, 0.05 * breaks)),
        because=f"fusion ends at each break, on {percent(share)} of the step",
        severity="hint",
    )
