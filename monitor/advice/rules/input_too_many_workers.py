"""More workers than the work or the cores can use: they cost more than they bring.

Looks at: workers against cores, the seconds of real work in a batch against the wait for it.
Why: Every worker is a process that competes for the same cores and hands each batch over through shared
    memory; cheap samples are made faster in place.
Remedy: fewer workers; none at all when a batch is cheaper to make than to hand over.
Gain: the step with the loader's work done in the best number of workers.
"""

from __future__ import annotations

from monitor.advice import loading
from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving


@rule(
    "input.too_many_workers",
    suppresses=("input.bound", "input.too_few_workers", "input.prefetch_low", "input.cpu_saturated"),
    bonus=0.2,
)
def check(run: RunContext) -> Advice | None:
    workers, cores = run.workers, run.cores
    if not workers or cores is None or run.load_work is None or not loading.starved(run):
        return None
    in_place = run.model.rest + run.load_work * 0.9
    oversubscribed = workers > max(2.0, 1.5 * cores)
    if not (oversubscribed or in_place < 0.85 * run.model.period) or loading.waits(run):
        return None
    best = 0 if in_place < 0.85 * run.model.period else max(1, int(cores) - (0 if run.has_cuda else 1))
    after = in_place if best == 0 else max(run.model.rest, run.load_work / best) * 1.05
    saved = run.model.period - after
    if saved <= 0:
        return None
    fewer = f"num_workers={best}"
    return Advice(
        title=f"Too many loader workers: {workers} on {cores:.0f} cores, a batch is "
        f"{seconds(run.load_work)} of "
        f"work but {percent(loading.data_share(run))} of the step waits for it",
        remedy=f"Use {fewer}: "
        + (
            "a batch is cheaper to make in place than to hand over."
            if best == 0
            else "no more than the free cores."
        ),
        change=loading.loader_line(run, f"num_workers={workers}", fewer),
        evidence={
            "num_workers": workers,
            "suggested_workers": best,
            "cores": cores,
            "batch_work_seconds": run.load_work,
            "data_seconds_per_step": run.model.wait,
        },
        what=Change(savings=(Saving("data", min(saved, run.model.wait), "workers"),)),
        low=Change(savings=(Saving("data", 0.4 * min(saved, run.model.wait), "workers"),)),
        high=Change(savings=(Saving("data", run.model.wait, "workers"),)),
        because=f"the same batches take {seconds(after)} a step with {fewer}",
    )
