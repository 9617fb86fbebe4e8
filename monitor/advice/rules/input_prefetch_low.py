"""The workers are fast enough on average, but the queue runs dry: prefetch more.

Looks at: `prefetch_factor`, the loader's capacity relative to the step, and how unevenly the wait is spread.
Why: Batches of uneven cost need a few in reserve; with a shallow queue every slow batch has to be waited for.
Remedy: raise `prefetch_factor` (2 is the default).
Gain: up to the part of the wait that the workers' average rate would hide.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import edits, loading
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import saved
from monitor.advice.rule import Advice, rule
from monitor.model import units

SAVED = Bounds(low=0.15, likely=0.6, high=0.95)
"""Share of the wait that batches in reserve cover. Judgement."""
UNEVEN = 4
"""A p95 wait this many times the median means that a few slow batches are waited for."""
KEEPS_UP = 0.8
"""Workers are fast enough if making a batch takes at most this share of the rest of the step."""
LEAST_MEDIAN = 1e-6
"""A median wait below a microsecond counts as none."""


@rule(
    "input.prefetch_low",
    "Shallow prefetch queue",
    settings=("loader.prefetch_factor",),
    suppresses=("input.bound", "input.too_few_workers"),
)
def check(run: RunContext) -> Advice | None:
    workers, prefetch = run.workers, run.count("loader", "prefetch_factor")
    if not workers or prefetch is None or run.load_work is None or not loading.starved(run):
        return None
    if prefetch > run.policy.prefetch_low or prefetch * workers > run.policy.prefetch_stock:
        return None
    phase = run.phase("data")
    capacity = run.load_work / workers
    uneven = phase is not None and (phase.p95_seconds or 0.0) > UNEVEN * max(
        phase.p50_seconds or 0.0, LEAST_MEDIAN
    )
    if not uneven or capacity > KEEPS_UP * run.model.rest:
        return None
    better = max(run.policy.prefetch_low, prefetch * 2)
    return Advice(
        title=f"Queue runs dry: {workers} workers could make a batch every {units.seconds(capacity)}, yet "
        f"{units.percent(loading.data_share(run))} of the time is spent waiting for slow ones "
        f"(prefetch_factor={prefetch})",
        remedy=f"Raise prefetch_factor from {prefetch} to {better}, so that a slow batch is covered by "
        "stock.",
        change=edits.keywords(run, "loader", prefetch_factor=str(better)),
        knobs={"loader.prefetch_factor": str(better)},
        effect="identical",
        price="memory for the batches that wait",
        evidence={
            "prefetch_factor": prefetch,
            "num_workers": workers,
            "data_p50_seconds": phase.p50_seconds if phase else None,
            "data_p95_seconds": phase.p95_seconds if phase else None,
            "batch_work_seconds": run.load_work,
        },
        gain=SAVED.part_of(saved("data", run.model.wait, "data")),
        because="the average rate of the workers is above the model's",
    )
