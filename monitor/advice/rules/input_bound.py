"""The step waits for data, and nothing finer is known about why.

Looks at: the share of the step waiting for the loader.
Why: While the loop waits for data the model computes nothing.
Remedy: time the loader alone, then give it workers or lighter samples.
Gain: at most the whole wait (Amdahl).
"""

from __future__ import annotations

from monitor.advice import loading
from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving


@rule("input.bound")
def check(run: RunContext) -> Advice | None:
    least = run.policy.dominant_share if loading.library_samples(run) else 0.25
    if loading.data_share(run) < least:
        return None
    wait = run.model.wait
    avoidable = max(0.0, wait - (run.model.handover if run.workers else 0.0))
    spot = loading.hot_fetch(run)
    where = f"; most of it in {spot.words}" if spot else ""
    return Advice(
        title=f"Input-bound: {percent(loading.data_share(run))} of the step waits for data{where}",
        remedy="Make samples cheaper (prepare them once), or load them beside the model with workers.",
        evidence={
            "data_share": loading.data_share(run),
            "data_seconds_per_step": wait,
            "num_workers": run.workers,
        },
        what=Change(savings=(Saving("data", 0.7 * avoidable, "data"),)),
        low=Change(savings=(Saving("data", 0.3 * avoidable, "data"),)),
        high=Change(savings=(Saving("data", avoidable, "data"),)),
        because=f"at most {seconds(avoidable)} of the wait a step",
    )
