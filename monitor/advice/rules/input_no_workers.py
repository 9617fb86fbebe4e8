"""The DataLoader has no workers: samples are made in the training loop itself.

Looks at: `num_workers == 0`, the share of the step waiting for data, timings inside the loader, cores.
Why: With `num_workers=0` nothing is loaded while the model computes; every sample's cost is paid in the
    step.
Remedy: `DataLoader(…, num_workers=2, persistent_workers=True)`, as many as the cores can feed.
Gain: step ≈ max(rest, work / workers, all CPU work / cores) instead of rest + work.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import batching, frameworks, loading
from monitor.advice.prediction.gain import Outcomes
from monitor.advice.prediction.step_model import Change
from monitor.advice.rule import Advice, rule
from monitor.model import units

LEAST_GAIN_WORK, WORK_PER_CORE, MOST_GAIN_WORK = 1.2, 0.4, 0.8
"""Factor on the loader's work in workers: for the lowest gain, how much more per core that others keep busy,
and for the highest gain. Judgement."""


@rule(
    "input.no_workers",
    "No loader workers",
    settings=("loader.num_workers",),
    suppresses=("input.bound", "compute.small_batch"),
)
def check(run: RunContext) -> Advice | None:
    if run.workers != 0 or not loading.starved(run) or loading.resident(run):
        return None
    workers, _ = loading.best_workers(run)
    if workers == 0:
        return None
    share = loading.data_share(run)
    return Advice(
        title=f"No loader workers: {units.percent(share)} of the step waits for data "
        "made in the main process",
        detail=loading.sample_text(run),
        remedy=f"Give the DataLoader {workers} worker{'s'[: workers > 1]} (num_workers={workers}; "
        f"{units.whole(run.cores)} cores here), so that the next batches are made while the model computes."
        + _cheaper(run)
        + frameworks.setting(run, "workers", workers=workers),
        change=loading.with_workers(run, workers),
        knobs=loading.worker_knobs(workers),
        effect=loading.effect_of_workers(run, workers),
        price="memory of a process for each worker",
        evidence={
            "num_workers": 0,
            "data_share": share,
            "data_seconds_per_step": run.model.wait,
            "step_seconds": run.model.period,
            "getitem_seconds": loading.getitem_seconds(run),
            "cores": run.cores,
            **_place(run),
        },
        gain=Outcomes(
            low=Change(workers=workers, work_left=LEAST_GAIN_WORK + WORK_PER_CORE * run.other_cores),
            likely=Change(workers=workers),
            high=Change(workers=workers, work_left=MOST_GAIN_WORK),
        ),
        because=f"loading {units.seconds(run.model.work)} a batch overlaps with "
        f"{units.seconds(run.model.rest)} of the rest on {units.whole(run.cores)} cores",
    )


def _cheaper(run: RunContext) -> str:
    """Random augmentation cannot be cached, but it can be done for many samples at once."""
    spot = loading.hot_fetch(run)
    if spot is None or not loading.random_samples(run) or not batching.worthwhile(run):
        return ""
    return f" And do the work of {spot.short} for the whole batch at once, with tensor operations."


def _place(run: RunContext) -> dict[str, object]:
    spot = loading.hot_fetch(run)
    return (
        {"hot_line": spot.place, "hot_function": spot.function, "hot_share_of_loader": spot.share}
        if spot
        else {}
    )
