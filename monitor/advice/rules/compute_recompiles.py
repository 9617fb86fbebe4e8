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
from monitor.advice.whatif import Change, Saving


@rule(
    "compute.recompiles",
    suppresses=("trend.periodic_stalls", "compute.graph_breaks", "compute.user_code"),
    bonus=0.5,
)
def check(run: RunContext) -> Advice | None:
    counted = run.scalar("dynamo.recompiles")
    recompiles = int(counted) if counted is not None else run.count("compile", "recompiles")
    stall = run.stall("recompile")
    steps = run.lead.steps if run.lead else 0
    cost = stall.total_seconds / steps if stall and steps else 0.0
    share = cost / run.period if run.period else 0.0
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
        what=Change(savings=(Saving("*", 0.9 * cost, "recompile"),)),
        because=f"{seconds(cost)} a step goes into compiling",
        severity="warning",
    )
