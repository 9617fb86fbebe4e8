"""The model is recompiled again and again.

Looks at: dynamo's recompile counter, steps flagged as compiling, distinct input shapes.
Why: A changed shape, or a Python number or flag that enters the graph, makes dynamo compile again; each time
    costs seconds, and after eight it gives up.
Remedy: `dynamic=True`, padding to a few lengths, `drop_last=True`, no Python numbers that change.
Gain: the time spent recompiling.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import edits
from monitor.advice.prediction.gain import Bounds, in_range
from monitor.advice.rule import Advice, rule
from monitor.model import units
from monitor.model.finding import Speedup

PLAIN_MARGIN = 1.1
"""A plain step may take this multiple of the median; the rest was spent compiling."""
MOST_STEPS = 0.5
"""If this share of the steps compiles, there is no steady step to speak of."""
COMPILATIONS_LEFT = Bounds(low=4, likely=1, high=0)
"""Compilations that remain with dynamic shapes. Judgement."""


@rule(
    "compute.recompiles",
    "Recompilations",
    suppresses=("trend.periodic_stalls", "compute.graph_breaks", "compute.user_code", "job.gc_pauses"),
    bonus=0.5,
    steps=False,
)
def check(run: RunContext) -> Advice | None:
    counted = run.scalar("dynamo.recompiles")
    recompiles = int(counted) if counted is not None else run.count("compile", "recompiles")
    steps = run.lead.steps if run.lead else 0
    if not run.reliable:
        return _without_end(run, recompiles or 0)
    cost = _compiling(run)
    plain = _plain(run)
    share = cost / (plain + cost) if plain + cost > 0 else 0.0
    if recompiles is None or recompiles < 2:
        return None
    if recompiles < run.policy.many_recompiles and share < run.policy.stall_share:
        return None
    shapes = run.count("shapes", "distinct")
    why = f" ({shapes} input shapes seen)" if shapes and shapes > 1 else ""
    drop = "" if run.setting("loader", "drop_last") else "; drop_last=True keeps the last short batch out"
    return Advice(
        title=f"Recompiling: {recompiles} recompilations in {steps} steps{why}, "
        f"{units.percent(share)} of the time",
        remedy=f"Compile with dynamic=True, or pad batches to a few fixed shapes{drop}.",
        change=edits.keywords(run, "compile", dynamic="True"),
        effect="rounding",
        evidence={"recompiles": recompiles, "stall_share": share, "shapes": shapes, "steps": steps},
        speedup=_speedup(plain, cost, recompiles),
        share=share,
        severity="warning",
    )


def _without_end(run: RunContext, recompiles: int) -> Advice | None:
    """Hardly any step without compiling: there is no usual step to compare with, but the cause is clear."""
    steps, compiling = (run.lead.steps, run.lead.warmup_steps) if run.lead else (0, 0)
    if recompiles < run.policy.many_recompiles or steps < run.policy.min_steps:
        return None
    if compiling < MOST_STEPS * steps:
        return None
    return Advice(
        title=f"Compiling endlessly: {recompiles} recompilations in {steps} steps, "
        f"{compiling} of them compiled something",
        remedy="Compile with dynamic=True, or pad batches to a few fixed shapes; TORCH_LOGS=recompiles says "
        "what changes.",
        change=edits.keywords(run, "compile", dynamic="True"),
        effect="rounding",
        evidence={"recompiles": recompiles, "compiling_steps": compiling, "steps": steps},
        severity="warning",
    )


def _plain(run: RunContext) -> float:
    """Seconds of a step without compiling: the median."""
    return (run.lead.step.p50 if run.lead else None) or run.usual or 0.0


def _compiling(run: RunContext) -> float:
    """Seconds per step spent compiling: what the whole run, including warm-up, took beyond plain steps."""
    if run.lead is None or not run.lead.steps:
        return 0.0
    whole = sum(phase.total_seconds for phase in run.lead.phases)
    return max(0.0, whole / run.lead.steps - PLAIN_MARGIN * _plain(run))


def _speedup(period: float, cost: float, recompiles: int) -> Speedup:
    """For the whole run, if one more compilation (for dynamic shapes) is all that remains."""
    now = period + cost
    counts = (min(recompiles, count) for count in COMPILATIONS_LEFT)
    low, likely, high = (now / (period + left / recompiles * cost) if period else 1.0 for left in counts)
    why = f"{units.seconds(cost)} a step is spent compiling, averaged over the run"
    return in_range(max(1.0, likely), low, high, why)
