"""Rows of tensors in memory are taken one by one and stacked, instead of a batch with one indexing.

Looks at: the data set (a `TensorDataset`, or a subset of one), torch's own collate, what a batch takes in the
    loader, and what one indexing takes for a whole batch of it, timed once at the first step.
Why: A DataLoader asks a `TensorDataset` for each row by itself and then stacks the rows: a Python call, an
    indexing and a small tensor for every row. Indexed with a list, tensors give the same batch at once.
Remedy: a batch sampler as the loader's sampler and `batch_size=None`.
Gain: the loader's work without what the whole batch does not need.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import frameworks, loading
from monitor.advice.evidence.whole_batches import batch_sampler
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import Change
from monitor.advice.rule import Advice, rule
from monitor.model import units

CLEAR = 0.7
"""One indexing must take at most this share of what the loader's work takes now."""
DOUBT = Bounds(low=2.0, likely=1.2, high=0.8)
"""Factors on the timed indexing: in the loop, caches are colder and the batch sampler's list is made besides.
Judgement, checked on loaders of 4 to 3,072 numbers a row."""


@rule(
    "input.rows_one_by_one",
    "Rows one by one",
    settings=("loader.whole_batches",),
    suppresses=(
        "input.bound",
        "input.no_workers",
        "input.too_few_workers",
        "input.slow_getitem",
        "input.slow_collate",
        "input.cpu_saturated",
        "compute.small_batch",
        "job.gc_pauses",
    ),
    bonus=0.2,
)
def check(run: RunContext) -> Advice | None:
    whole, work = run.setting("loader", "whole_batch_seconds"), run.model.work
    if not isinstance(whole, float) or not loading.starved(run) or work <= 0.0 or whole > CLEAR * work:
        return None
    if frameworks.framework(run) or run.setting("loader", "own") is False:
        return None  # a library makes the loader, and not every one takes a sampler of batches
    share = loading.data_share(run)
    data = run.setting("loader", "dataset") or "the data set"
    return Advice(
        title=f"Rows one by one: {units.percent(share)} of the step waits for batches that are stacked from "
        f"{units.whole(run.batch_size)} rows of `{data}`",
        detail=f"{units.seconds(work)} a batch; one indexing gives the same batch in {units.seconds(whole)}",
        remedy="Let the sampler give whole batches and index once for each: "
        "`DataLoader(data, batch_size=None, sampler=BatchSampler(RandomSampler(data), batch_size, "
        "drop_last=False))`.",
        change=batch_sampler(run),
        knobs={"loader.whole_batches": "on"},
        effect="identical",
        avoid="Reading `loader.batch_size` (None then) or the length of `loader.sampler` (batches then).",
        evidence={
            "batch_seconds": work,
            "whole_batch_seconds": whole,
            "data_share": share,
            "batch_size": run.batch_size,
            "num_workers": run.workers,
        },
        gain=DOUBT.of(lambda factor: Change(work_left=min(1.0, factor * whole / work))),
        because=f"one indexing takes {units.percent(whole / work)} of the loader's work on a batch",
    )
