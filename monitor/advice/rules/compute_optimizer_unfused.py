"""The optimizer update runs parameter by parameter where a fused one exists.

Looks at: the optimizer's class and flags, its share of the step, number of parameters and groups.
Why: Without `fused` or `foreach` each parameter costs a handful of small operations in Python; a fused
    update is one pass over memory.
Remedy: `torch.optim.AdamW(…, fused=True)`; one parameter group instead of many; a sparse optimizer for
    large embeddings.
Gain: on a CPU an Adam update in a quarter of its time, SGD in 60 %, others (foreach) in three quarters.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import edits, frameworks
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import saved
from monitor.advice.rule import Advice, rule
from monitor.model import units
from monitor.model.finding import Severity

FUSED = ("Adam", "AdamW", "SGD", "Adagrad")

ADAM_LEFT = Bounds(low=0.45, likely=0.25, high=0.12)
LEFT = {"Adam": ADAM_LEFT, "AdamW": ADAM_LEFT, "SGD": Bounds(low=0.8, likely=0.58, high=0.4)}
LEFT_OTHERWISE = Bounds(low=1.0, likely=0.75, high=0.5)
LEFT_ON_GPU = Bounds(low=0.65, likely=0.35, high=0.1)
"""Share of the update that remains. On a CPU as measured on few large and many small parameters; optimizers
other than these have only `foreach`. On a GPU a literature value, never checked here."""
MANY_GROUPS_LEFT = 0.8
"""With many parameter groups, this factor on top: each of them costs its own call now."""
MODEL_CALLS = 0.3
"""If passes of the model take this share of the update, the optimizer calls the model itself."""


@rule("compute.optimizer_unfused", "Unfused optimizer", settings=("optimizer.fused", "optimizer.foreach"))
def check(run: RunContext) -> Advice | None:
    name = run.setting("optimizer", "class")
    cost, share = run.seconds("optimizer"), run.share("optimizer")
    if not isinstance(name, str) or share < run.policy.optimizer_share:
        return None
    kind = str(run.setting("optimizer", "kind"))
    if run.setting("optimizer", "fused") is True or _evaluates(run, kind):
        return None
    groups = run.count("optimizer", "param_groups") or 1
    many = groups > run.policy.many_groups
    explicit = run.setting("optimizer", "foreach") is False or many
    severity: Severity | None = None if explicit or share >= run.policy.optimizer_warn_share else "hint"
    better = "fused=True" if kind in FUSED else "foreach=True"
    left = LEFT_ON_GPU if run.has_cuda else LEFT.get(kind, LEFT_OTHERWISE)
    left = left.times(MANY_GROUPS_LEFT) if many else left
    known = f"{groups} parameter groups, " if groups > 1 else ""
    return Advice(
        title=f"Optimizer update takes {units.percent(share)} of the step: {name} ({known}{_flags(run)}), "
        f"{units.seconds(cost)} a step",
        remedy=_remedy(name, kind, better, groups if many else 0) + frameworks.setting(run, "optimizer"),
        change=_change(run, kind, better),
        knobs={f"optimizer.{better.removesuffix('=True')}": "on"},
        effect="rounding",
        evidence={
            "optimizer": name,
            "optimizer_share": share,
            "optimizer_seconds": cost,
            "fused": run.setting("optimizer", "fused"),
            "foreach": run.setting("optimizer", "foreach"),
            "param_groups": groups,
            "parameters": run.count("model", "parameters"),
        },
        gain=left.of(lambda part: saved("optimizer", (1.0 - part) * cost, "optimizer")),
        because=f"with {better} the update needs about {units.percent(left.likely)} of {units.seconds(cost)}",
        severity=severity,
    )


def _evaluates(run: RunContext, kind: str) -> bool:
    """The optimizer calls the model itself (a closure): its time is forward and backward, not the update."""
    inside = [spot for spot in run.hotspots if spot.phase == "optimizer"]
    passes = sum(spot.share for spot in inside if spot.kind == "module" and not spot.update)
    return kind == "LBFGS" or passes > MODEL_CALLS


def _change(run: RunContext, kind: str, better: str) -> str:
    """Only for torch's own optimizers with dense gradients: the fused ones do not support sparse ones."""
    layers = run.setting("model", "layers")
    sparse = isinstance(layers, list) and any(str(layer).startswith("Embedding") for layer in layers)
    key, _, value = better.partition("=")
    return "" if sparse and kind == "SGD" else edits.keywords(run, "optimizer", **{key: value})


def _flags(run: RunContext) -> str:
    """What the script specified about the implementation, if anything."""
    said = {key: run.setting("optimizer", key) for key in ("fused", "foreach")}
    return ", ".join(f"{key}={value}" for key, value in said.items() if value is not None) or "not fused"


def _remedy(name: str, kind: str, better: str, groups: int) -> str:
    if kind not in FUSED:
        instead = "use torch.optim.AdamW(…, fused=True), or write the update with torch._foreach_* operations"
        return f"{name} updates parameter by parameter: {instead}."
    merge = f" and merge the {groups} parameter groups where they agree" if groups else ""
    return f"Pass {better} to {name}{merge}: one pass over all parameters, not several small operations each."
