"""The optimizer update runs parameter by parameter where a fused one exists.

Looks at: the optimizer's class and flags, its share of the step, number of parameters and groups.
Why: Without `fused` or `foreach` each parameter costs a handful of small operations in Python; a fused
    update is one pass over memory.
Remedy: `torch.optim.AdamW(…, fused=True)`; one parameter group instead of many; a sparse optimizer for
    large embeddings.
Gain: on a CPU an Adam update at a quarter of its time, SGD at 60 %, others (foreach) at three quarters.
"""

from __future__ import annotations

from monitor.advice import hotlines
from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving
from monitor.snapshot import Severity

FUSED = ("Adam", "AdamW", "SGD", "Adagrad")

LEFT = {"Adam": (0.45, 0.25, 0.12), "AdamW": (0.45, 0.25, 0.12), "SGD": (0.8, 0.58, 0.4)}
LEFT_OTHERWISE = (1.0, 0.75, 0.5)
LEFT_ON_GPU = (0.65, 0.35, 0.1)
"""Share of the update that is left, low, likely and high gain. On a CPU as measured on few large and many
small parameters; others than these have only `foreach`. With many groups less is left."""


@rule("compute.optimizer_unfused")
def check(run: RunContext) -> Advice | None:
    name = run.setting("optimizer", "class")
    cost, share = run.seconds("optimizer"), run.share("optimizer")
    if not isinstance(name, str) or share < run.policy.optimizer_share:
        return None
    if run.setting("optimizer", "fused") is True or _evaluates(run, name):
        return None
    groups = run.count("optimizer", "param_groups") or 1
    explicit = run.setting("optimizer", "foreach") is False or groups > 8
    severity: Severity | None = None if explicit or share >= run.policy.optimizer_warn_share else "hint"
    better = "fused=True" if name in FUSED else "foreach=True"
    left = LEFT_ON_GPU if run.has_cuda else LEFT.get(name, LEFT_OTHERWISE)
    least, likely, most = (part * (0.8 if groups > 8 else 1.0) for part in left)
    known = f"{groups} parameter groups, " if groups > 1 else ""
    return Advice(
        title=f"Optimizer update takes {percent(share)} of the step: {name} ({known}{_flags(run)}), "
        f"{seconds(cost)} a step",
        remedy=_remedy(name, better, groups),
        change=f"- {name}(model.parameters(), …)\n+ {name}(model.parameters(), …, {better})",
        evidence={
            "optimizer": name,
            "optimizer_share": share,
            "optimizer_seconds": cost,
            "fused": run.setting("optimizer", "fused"),
            "foreach": run.setting("optimizer", "foreach"),
            "param_groups": groups,
            "parameters": run.count("model", "parameters"),
        },
        what=Change(savings=(Saving("optimizer", (1.0 - likely) * cost, "optimizer"),)),
        low=Change(savings=(Saving("optimizer", (1.0 - least) * cost, "optimizer"),)),
        high=Change(savings=(Saving("optimizer", (1.0 - most) * cost, "optimizer"),)),
        because=f"with {better} the update needs about {percent(likely)} of {seconds(cost)}",
        severity=severity,
    )


def _evaluates(run: RunContext, name: str) -> bool:
    """The optimizer calls the model itself (a closure): its time is forward and backward, not the update."""
    inside = [spot for spot in run.hotspots if spot.phase == "optimizer"]
    passes = sum(spot.share for spot in inside if spot.kind == "module" or hotlines.passes(spot.code))
    own = sum(spot.share for spot in inside if ".step(" in spot.code)
    return name == "LBFGS" or passes - own > 0.3


def _flags(run: RunContext) -> str:
    """What was said about the implementation, if anything."""
    said = {key: run.setting("optimizer", key) for key in ("fused", "foreach")}
    return ", ".join(f"{key}={value}" for key, value in said.items() if value is not None) or "not fused"


def _remedy(name: str, better: str, groups: int) -> str:
    if name not in FUSED:
        instead = "use torch.optim.AdamW(…, fused=True), or write the update with torch._foreach_* operations"
        return f"{name} updates parameter by parameter: {instead}."
    merge = f" and merge the {groups} parameter groups where they agree" if groups > 8 else ""
    return f"Pass {better} to {name}{merge}: one pass over all parameters, not several small operations each."
