"""The workers are fast enough on average, but the queue runs dry: prefetch more.

Looks at: `prefetch_factor`, the loader's capacity against the step, and how unevenly the wait is spread.
Why: Batches of uneven cost need a few in stock; with a shallow queue every slow batch is waited for.
Remedy: raise `prefetch_factor` (2 is the default).
Gain: up to the part of the wait the workers' average rate would hide.
"""

from __future__ import annotations

from monitor.advice import loading
from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving


@rule("input.prefetch_low", suppresses=("input.bound", "input.too_few_workers"))
def check(run: RunContext) -> Advice | None:
    workers, prefetch = run.workers, run.count("loader", "prefetch_factor")
    if not workers or prefetch is None or prefetch > 4 or run.load_work is None or not loading.starved(run):
        return None
    phase = run.phase("data")
    capacity = run.load_work / workers
    uneven = phase is not None and (phase.p95_seconds or 0.0) > 4 * max(phase.p50_seconds or 0.0, 1e-6)
    if not uneven or capacity > 0.8 * run.model.rest or prefetch * workers > 8:
        return None
    better = max(4, prefetch * 2)
    wait = run.model.wait
    return Advice(
        title=f"Queue runs dry: {workers} workers could make a batch every {seconds(capacity)}, yet "
        f"{percent(loading.data_share(run))} of the time waits for slow ones (prefetch_factor={prefetch})",
        remedy=f"Raise prefetch_factor from {prefetch} to {better}, so that a slow batch is covered by "
        "stock.",
        change=loading.loader_line(
            run, f"num_workers={workers}", f"num_workers={workers}, prefetch_factor={better}"
        ),
        evidence={
            "prefetch_factor": prefetch,
            "num_workers": workers,
            "data_p50_seconds": phase.p50_seconds if phase else None,
            "data_p95_seconds": phase.p95_seconds if phase else None,
            "batch_work_seconds": run.load_work,
        },
        what=Change(savings=(Saving("data", 0.6 * wait, "data"),)),
        low=Change(savings=(Saving("data", 0.15 * wait, "data"),)),
        high=Change(savings=(Saving("data", 0.95 * wait, "data"),)),
        because="the average rate of the workers is above the model's",
    )
