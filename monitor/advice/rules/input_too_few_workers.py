"""The loader has workers, but too few for what a batch costs.

Looks at: workers, the loader's seconds a batch, the exposed wait for data, cores.
Why: Workers load beside the model; when together they make batches more slowly than the model eats them,
    the step is as long as the loader.
Remedy: raise `num_workers` to what the cores allow; past that only cheaper samples help.
Gain: step ≈ max(rest, work / workers, all CPU work / cores) with the new number of workers.
"""

from __future__ import annotations

from monitor.advice import loading
from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change


@rule("input.too_few_workers", suppresses=("input.bound", "compute.small_batch"))
def check(run: RunContext) -> Advice | None:
    workers, cores = run.workers, run.cores
    if not workers or cores is None or run.load_work is None or not loading.starved(run):
        return None
    best, period = loading.best_workers(run)
    if best <= workers or period > 0.95 * run.model.period:
        return None
    kind = "mostly waits (I/O)" if loading.waits(run) else "computes"
    return Advice(
        title=f"Too few loader workers: {workers} worker{'s'[: workers > 1]} at {seconds(run.load_work)} a "
        "batch "
        f"cannot keep up, {percent(loading.data_share(run))} of the step waits for data; "
        + loading.sample_words(run),
        remedy=f"Raise num_workers from {workers} to {best}: making a sample {kind}, and there are "
        f"{cores:.0f} cores.",
        change=loading.loader_line(
            run, f"num_workers={workers}", f"num_workers={best}, persistent_workers=True"
        ),
        evidence={
            "num_workers": workers,
            "suggested_workers": best,
            "batch_work_seconds": run.load_work,
            "data_share": loading.data_share(run),
            "getitem_seconds": loading.getitem_seconds(run),
            "cores": cores,
        },
        what=Change(workers=best),
        low=Change(workers=max(workers, 2 * best // 3), work_left=1.15 + 0.4 * run.other_cores),
        high=Change(workers=best, work_left=0.85),
        because=f"{best} workers make a batch every {seconds(run.model.work / best)}",
    )
