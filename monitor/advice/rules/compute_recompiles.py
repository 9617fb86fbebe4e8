"""The model is compiled again and again.

Looks at: dynamo's recompile counter, steps flagged as compiling, distinct input shapes.
Why: A changed shape, a Python number or a flag that enters the graph makes dynamo compile anew; each time
    costs seconds, and after eight it gives up.
Remedy: `dynamic=True`, padding to a few lengths, `drop_last=True`, no Python numbers that change.
Gain: the time in recompilation.
"""

from __future__ import annotations

from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import in_range
from monitor.snapshot import Speedup


@rule(
    "compute.recompiles",
    suppresses=("trend.periodic_stalls", "compute.graph_breaks", "compute.user_code", "job.gc_pauses"),
    bonus=0.5,
)
def check(run: RunContext) -> Advice | None:
    counted = run.scalar("dynamo.recompiles")
    recompiles = int(counted) if counted is not None else run.count("compile", "recompiles")
    steps = run.lead.steps if run.lead else 0
    cost = _compiling(run)
    plain = _plain(run)
    share = cost / (plain + cost) if plain + cost > 0 else 0.0
    if recompiles is None or recompiles < 2 or (recompiles < 6 and share < run.policy.stall_share):
        return None
    shapes = run.count("shapes", "distinct")
    why = f" ({shapes} input shapes seen)" if shapes and shapes > 1 else ""
    drop = "" if run.setting("loader", "drop_last") else "; drop_last=True keeps the last short batch out"
    return Advice(
        title=f"Recompiling: {recompiles} recompilations in {steps} steps{why}, {percent(share)} of the time",
        remedy=f"Compile with dynamic=True, or pad batches to a few fixed shapes{drop}.",
        change="- model = torch.compile(model)\n+ model = torch.compile(model, dynamic=True)",
        evidence={"recompiles": recompiles, "stall_share": share, "shapes": shapes, "steps": steps},
        speedup=_speedup(plain, cost, recompiles),
        severity="warning",
    )


def _plain(run: RunContext) -> float:
    """Seconds of a step that compiles nothing: the median one."""
    return (run.lead.step.p50 if run.lead else None) or run.usual or 0.0


def _compiling(run: RunContext) -> float:
    """Seconds a step spent compiling: what the whole run, warm-up included, took beyond plain steps."""
    if run.lead is None or not run.lead.steps:
        return 0.0
    whole = sum(phase.total_seconds for phase in run.lead.phases)
    return max(0.0, whole / run.lead.steps - 1.1 * _plain(run))


def _speedup(period: float, cost: float, recompiles: int) -> Speedup:
    """The whole run, when one more compilation (for dynamic shapes) is all that is left of them."""
    now = period + cost
    counts = (min(recompiles, 4), 1, 0)
    low, likely, high = (now / (period + left / recompiles * cost) if period else 1.0 for left in counts)
    why = f"{seconds(cost)} a step goes into compiling, spread over the run"
    return in_range(max(1.0, likely), low, high, why)
