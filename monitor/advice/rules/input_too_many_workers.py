"""More workers than the work or the cores can use: they cost more than they bring.

Looks at: workers against cores, the seconds of real work in a batch against the wait for it, stalls.
Why: Every worker is a process that competes for the same cores and hands each batch over through shared
    memory; cheap samples are made faster in place. Twice as many workers as cores take the cores from the
    model even when no batch is waited for.
Remedy: fewer workers; none at all when a batch is cheaper to make than to hand over.
Gain: the step with the loader's work done in the best number of workers, without the stalls.
"""

from __future__ import annotations

from monitor.advice import loading
from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving, scaled
from monitor.snapshot import Phase

CALM_LOOP = 0.75
"""The loop's median step is disturbed, too: by a cache that others have used in the meantime."""
CALM = 0.5
"""Fetching takes this share of its time in a crowd of workers when it is done in the loop."""
SHARED_SECONDS = 0.0004
"""What a batch of a few tensors costs to put into shared memory."""


@rule(
    "input.too_many_workers",
    suppresses=(
        "input.bound",
        "input.too_few_workers",
        "input.prefetch_low",
        "input.cpu_saturated",
        "trend.periodic_stalls",
        "compute.small_batch",
    ),
    bonus=0.5,
)
def check(run: RunContext) -> Advice | None:
    workers, cores = run.workers, run.cores
    if not workers or cores is None or run.load_work is None:
        return None
    if not loading.starved(run):
        return _crowded(run, workers, cores)
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
        what=_change(run, best, 1.0),
        low=_change(run, best, 1.8),
        high=_change(run, best, 0.5),
        because=f"the same batches take at most {seconds(after)} a step with {fewer}",
    )


def _change(run: RunContext, best: int, doubt: float) -> Change:
    """Fewer workers: the loop gets its core back (its median step shows how long it takes undisturbed),
    and in the loop a batch is made without shared memory."""
    medians = ((phase, phase.p50_seconds or 0.0) for phase in _disturbed(run))
    calm = sum(max(0.0, run.seconds(phase.name) - CALM_LOOP * median) for phase, median in medians)
    savings = (Saving("*", min(1.0, 2.0 - doubt) * calm, "crowd"),) if doubt < 2.0 else ()
    if best > 0:
        return Change(workers=best, savings=savings)
    loader, work = (run.lead.loader if run.lead else None), run.model.work
    collate = (loader.collate_seconds or 0.0) if loader else 0.0
    in_place = CALM * max(0.0, work - collate) + max(0.15 * collate, collate - SHARED_SECONDS)
    return Change(
        workers=0, work_left=min(1.0, doubt * in_place / work) if work > 0 else 1.0, savings=savings
    )


def _disturbed(run: RunContext) -> list[Phase]:
    """Phases of the loop whose median is known."""
    phases = run.lead.phases if run.lead else ()
    return [phase for phase in phases if phase.name != "data" and phase.p50_seconds]


def _crowded(run: RunContext, workers: int, cores: float) -> Advice | None:
    """No batch is waited for, but there are so many workers that they take the cores from the model."""
    loader = run.lead.loader if run.lead else None
    busy = loader.worker_busy_ratio if loader else None
    if workers < max(4.0, 3.0 * cores) or busy is None or busy > 0.5:
        return None
    enough = max(1, min(int(cores), round(1.5 * busy * workers)))
    stalls = sum(stall.total_seconds for stall in run.run.stalls if stall.kind in ("forward", "backward"))
    steps = run.lead.steps if run.lead and run.lead.steps else 1
    lost = min(0.5 * run.model.period, stalls / steps + run.model.wait)
    change = Change(savings=(Saving("*", max(lost, 0.1 * run.model.rest), "workers"),))
    return Advice(
        title=f"Too many loader workers: {workers} on {cores:.0f} cores, where {enough} would do: a batch is "
        f"{seconds(run.load_work)} of work, and the workers are idle {percent(1.0 - busy)} of the time",
        remedy=f"Use num_workers={enough}: the other {workers - enough} processes take memory, start-up time "
        "and the cores the model computes on.",
        change=loading.loader_line(run, f"num_workers={workers}", f"num_workers={enough}"),
        evidence={
            "num_workers": workers,
            "suggested_workers": enough,
            "cores": cores,
            "batch_work_seconds": run.load_work,
            "worker_busy_ratio": busy,
            "stall_seconds": stalls,
        },
        what=change,
        low=scaled(change, 0.3),
        high=scaled(change, 2.0),
        because="the cores go to the model, and stalls while workers crowd them go",
        severity="warning",
    )
