"""Much of the step goes into the user's own code outside the model.

Looks at: hot lines in the loop that are not forward, backward or optimizer work and of no better known
    kind.
Why: Whatever runs in the loop on the host runs while the model waits.
Remedy: move it out of the loop, do it less often, or vectorise it.
Gain: most of the line's time.
"""

from __future__ import annotations

import re

from monitor.advice import hotlines
from monitor.advice.context import Hotspot, RunContext
from monitor.advice.finding import seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving, scaled

FUNCTIONAL = re.compile(
    r"\w @ \w|\bF\.\w+\(|functional\.\w+\("
    r"|torch\.(tanh|relu|sigmoid|softmax|matmul|mm|bmm|einsum|addmm|baddbmm|conv\dd|layer_norm)\("
)


@rule("compute.user_code")
def check(run: RunContext) -> Advice | None:
    own = [spot for spot in hotlines.blocks(run, "other", "between", "forward") if not _model_work(spot)]
    spot = max(own, key=run.hot_seconds, default=None)
    if spot is None or run.period is None:
        return None
    cost = run.hot_seconds(spot)
    if cost < run.policy.user_code_share * run.period:
        return None
    if spot.share < run.policy.hot_share and cost < 0.25 * run.period:
        return None
    asked = hotlines.asked_at(run, spot)
    called = f" (called at {asked.place})" if asked.place != spot.place else ""
    job = Change(savings=(Saving(spot.phase, cost, spot.place),))
    where = "between the steps" if spot.phase == "between" else "in the step, outside the model"
    return Advice(
        title=f"Your own code {where}: {hotlines.words(run, spot)}",
        remedy=_remedy(spot, called),
        change=f"- {asked.code or spot.words}\n+ # once before the loop, or: if step % 100 == 0: …",
        evidence=hotlines.evidence(run, spot),
        what=scaled(job, 0.9),
        low=scaled(job, 0.5),
        high=scaled(job, 1.0),
        because=f"{seconds(cost)} of {seconds(run.period)} a step is this line",
    )


def _remedy(spot: Hotspot, called: str) -> str:
    special = hotlines.instead(spot)
    if special:
        return f"At {spot.place}{called}: {special}."
    return (
        f"Move `{_short(spot)}`{called} out of the loop: compute it once before, every 100 steps, or in one "
        "vectorised call."
    )


def _short(spot: Hotspot) -> str:
    """The function, or the line where it stands in the loop itself."""
    return spot.function if spot.function not in ("", "<module>") and spot.call else spot.code or spot.place


def _model_work(spot: Hotspot) -> bool:
    """The passes themselves (calling the model or the loss, code of the model), not something beside."""
    inside_model = spot.kind == "module" or spot.function.endswith(("forward", "__call__", "loss"))
    if spot.phase != "between" and not spot.no_grad and FUNCTIONAL.search(spot.code):
        return True  # a model written out in operations
    return inside_model or spot.is_loop or "loss" in spot.code or hotlines.passes(spot.code)
