"""Nothing worth changing was found: the run is healthy.

Looks at: everything the other rules look at; speaks only when none of them warns.
Why: Knowing that nothing is wrong saves the time of looking, and the next limit says where to look first
    when the model or the data grows.
Remedy: none; names the phase that will be the limit next.
Gain: none predicted.
"""

from __future__ import annotations

from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, closing_rule
from monitor.snapshot import Finding

LIMITS = {
    "data": "the loader: watch it when the samples get heavier",
    "forward": "the model's forward pass: a larger batch, a compiled or smaller model",
    "backward": "the backward pass: compute itself",
    "optimizer": "the optimizer update: fewer or fused updates, or accumulation",
    "other": "your own code between the phases",
    "between": "your own code between the steps",
}


@closing_rule("healthy.ok")
def check(run: RunContext, findings: list[Finding]) -> Advice | None:
    if any(finding.severity in ("critical", "warning") for finding in findings):
        return None
    if not run.phases or run.period is None:
        return None
    name = max(run.phases, key=lambda phase: run.phases[phase])
    share = run.share(name)
    limit = LIMITS.get(name, f"the phase {name}")
    if name == "optimizer" and run.setting("optimizer", "class") == "LBFGS":
        limit = "the passes the optimizer makes itself: its max_iter, a smaller model"
    if name == "other" and not run.seconds("forward"):
        limit = "the forward pass with your own code around it"
    return Advice(
        title=f"Healthy: steps of {seconds(run.period)}, {percent(run.share('data'))} waiting for data",
        remedy=f"Nothing to change. The next limit is {limit} ({percent(share)} of the step in {name}).",
        evidence={
            "step_seconds": run.period,
            "limit": name,
            "limit_share": share,
            "data_share": run.share("data"),
        },
        severity="healthy",
    )
