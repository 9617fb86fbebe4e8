"""The step waits for data, and nothing more specific is known about why.

Looks at: the share of the step waiting for the loader.
Why: While the loop waits for data the model computes nothing.
Remedy: time the loader on its own, then give it workers or lighter samples.
Gain: at most the whole wait (Amdahl). Unknown where samples drawn at random take their time in a few heavy
    operations: these can neither be kept nor be done in fewer calls.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import batching, loading
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import saved
from monitor.advice.rule import Advice, rule
from monitor.model import units

SAVED = Bounds(low=0.3, likely=0.7, high=1.0)
"""Share of the wait that is saved if nothing more specific is known about it. Judgement."""

LIGHTER = "Make samples cheaper (prepare them once), or load them in workers while the model computes."
HEAVY = (
    "The random part of the samples is a few heavy operations: keep what comes before it ready to use, "
    "choose cheaper operations or smaller inputs for it, or do it on the device."
)


@rule("input.bound", "Input-bound")
def check(run: RunContext) -> Advice | None:
    least = run.policy.dominant_share if loading.resident(run) else run.policy.input_bound_share
    if loading.data_share(run) < least:
        return None
    wait = run.model.wait
    avoidable = max(0.0, wait - (run.model.handover if run.workers else 0.0))
    spot = loading.hot_fetch(run)
    heavy = _heavy(run)
    return Advice(
        title=f"Input-bound: {units.percent(loading.data_share(run))} of the step waits for data",
        detail=f"most of it in {spot.text}" if spot else "",
        remedy=HEAVY if heavy else LIGHTER,
        evidence={
            "data_share": loading.data_share(run),
            "data_seconds_per_step": wait,
            "num_workers": run.workers,
        },
        gain=None if heavy else SAVED.part_of(saved("data", avoidable, "data")),
        because=f"at most {units.seconds(avoidable)} of the wait a step",
    )


def _heavy(run: RunContext) -> bool:
    """Most of what a batch takes is drawn at random, in a few operations."""
    if (loading.part_share(run, "collate") or 0.0) >= run.policy.dominant_share:
        return loading.random_batches(run) and not batching.collate_worthwhile(run)
    return loading.random_samples(run) and not batching.worthwhile(run)
