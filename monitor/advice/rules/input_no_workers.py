"""The DataLoader has no workers: samples are made in the training loop itself.

Looks at: `num_workers == 0`, the share of the step waiting for data, the loader's inside timing, cores.
Why: With `num_workers=0` nothing is loaded while the model computes; every sample's cost is paid in the
    step.
Remedy: `DataLoader(…, num_workers=2, persistent_workers=True)`, as many as the cores can feed.
Gain: step ≈ max(rest, work / workers, all CPU work / cores) against rest + work.
"""

from __future__ import annotations

from monitor.advice import loading
from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change


@rule("input.no_workers", suppresses=("input.bound", "compute.small_batch"))
def check(run: RunContext) -> Advice | None:
    if run.workers != 0 or not loading.starved(run) or run.setting("loader", "dataset_resident") is True:
        return None
    workers, _ = loading.best_workers(run)
    if workers == 0 or (loading.library_samples(run) and not loading.waits(run)):
        return None
    share = loading.data_share(run)
    words = loading.sample_words(run)
    pin = ", pin_memory=True" if run.has_cuda else ""
    return Advice(
        title=f"No loader workers: {percent(share)} of the step waits for data made in the main process; "
        f"{words}",
        remedy=f"Give the DataLoader {workers} worker{'s'[: workers > 1]} (num_workers={workers}; "
        f"{run.cores:.0f} cores here), so that the next batches are made while the model computes."
        + _cheaper(run),
        change=loading.loader_line(
            run, "num_workers=0)", f"num_workers={workers}, persistent_workers=True{pin})"
        ).replace("))", ")"),
        evidence={
            "num_workers": 0,
            "data_share": share,
            "data_seconds_per_step": run.model.wait,
            "step_seconds": run.model.period,
            "getitem_seconds": loading.getitem_seconds(run),
            "cores": run.cores,
            **_place(run),
        },
        what=Change(workers=workers),
        low=Change(workers=workers, work_left=1.2 + 0.4 * run.other_cores),
        high=Change(workers=workers, work_left=0.8),
        because=f"loading {seconds(run.model.work)} a batch overlaps with {seconds(run.model.rest)} of the "
        "rest "
        f"on {run.cores:.0f} cores",
    )


def _cheaper(run: RunContext) -> str:
    """Random augmentation cannot be cached, but it can be made for many samples at once."""
    spot = loading.hot_fetch(run)
    if spot is None or not loading.random_samples(run):
        return ""
    return f" And do the work of {spot.short} for the whole batch at once, with tensor operations."


def _place(run: RunContext) -> dict[str, object]:
    spot = loading.hot_fetch(run)
    return {"hot_line": spot.place, "hot_function": spot.function, "hot_share": spot.share} if spot else {}
