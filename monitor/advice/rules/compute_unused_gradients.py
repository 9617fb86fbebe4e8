"""Backward computes gradients of parameters that no optimizer has.

Looks at: parameters of the model that have a gradient at the first update, are in no optimizer and have not
    changed many updates later.
Why: Whatever requires gradients gets them, in every step, whether or not an optimizer applies them. To give
    an optimizer the last layer only does not freeze the others.
Remedy: `requires_grad_(False)` for what is not trained.
Gain: where all of it comes before the trained part, most of backward; otherwise only the gradients of its
    weights, about half of its share.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence.compute_cost import backward_change
from monitor.advice.prediction.gain import Bounds
from monitor.advice.rule import Advice, rule
from monitor.model import units

LEAST_SHARE = 0.3
"""Share of the learning parameters, by number, from which it is worth saying. Chosen."""
FIRST_SAVED = Bounds(low=0.6, likely=0.85, high=1.0)
"""Of backward's share: all of it, but for what autograd does in any case. Judgement."""
MIXED_SAVED = Bounds(low=0.15, likely=0.4, high=0.55)
"""The same if the gradient still has to pass through to something trained. Judgement."""


@rule("compute.unused_gradients", "Unused gradients", bonus=0.3, suppresses=("compute.small_batch",))
def check(run: RunContext) -> Advice | None:
    tensors, size = (run.setting("unapplied", name) for name in ("tensors", "parameters"))
    if not isinstance(tensors, float) or not isinstance(size, float) or tensors < LEAST_SHARE:
        return None
    backward = run.seconds("backward")
    if backward <= 0.0 or run.period is None:
        return None
    first = run.setting("unapplied", "first") is True
    clipped = run.seconds("grad_norm") > 0.0
    return Advice(
        title=f"Gradients that nobody applies: {units.percent(size)} of the parameters that get one are in "
        f"no optimizer ({units.percent(backward / run.period)} of the step is backward)",
        remedy=f"Freeze what is not trained: {_frozen(run)}. If it is to be trained, give it to the "
        "optimizer.",
        effect="changes_training" if clipped else "identical",
        avoid="Freezing what an optimizer is given later, or what something else reads the gradients of"
        + (": clipping counts them in its norm." if clipped else "."),
        evidence={"tensor_share": tensors, "parameter_share": size, "before_trained": first},
        gain=(FIRST_SAVED if first else MIXED_SAVED).of(
            lambda part: backward_change(run, part * max(tensors, size), "unused")
        ),
        because="backward stops where nothing before it is trained"
        if first
        else "the gradients of their weights are not computed",
    )


def _frozen(run: RunContext) -> str:
    names = run.setting("unapplied", "names")
    known = [f"`{name}.requires_grad_(False)`" for name in names] if isinstance(names, list) else []
    return (", ".join(known) + " on the model") if known else "`requires_grad_(False)` before training"
