"""The compiled model is cut into many graphs.

Looks at: dynamo's graph-break counter relative to the graphs captured.
Why: At every break the compiled code returns to Python: fusion ends there, and CUDA graphs cannot span
    it.
Remedy: remove `.item()`, prints and data-dependent branches from forward; `fullgraph=True` shows the
    first.
Gain: a small part of forward + backward per break.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence.compute_cost import passes_change
from monitor.advice.prediction.gain import Bounds
from monitor.advice.rule import Advice, rule
from monitor.model import units

LIKELY_PART, LIKELY_MOST, HIGH_PART, HIGH_MOST = 0.02, 0.2, 0.05, 0.4
"""Share of both passes that is saved per break, and at most for all of them. A literature value; never
checked on a GPU here."""


@rule("compute.graph_breaks", "Graph breaks")
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
        effect="identical",
        evidence={"graph_breaks": breaks, "graphs": graphs, "compute_share": share},
        gain=Bounds(
            low=1.0,
            likely=1.0 - min(LIKELY_MOST, LIKELY_PART * breaks),
            high=1.0 - min(HIGH_MOST, HIGH_PART * breaks),
        ).of(lambda left: passes_change(run, left)),
        because=f"fusion ends at each break, on {units.percent(share)} of the step",
        severity="hint",
    )
