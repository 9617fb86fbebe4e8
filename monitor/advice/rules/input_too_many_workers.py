"""More workers than the work or the cores can use: they cost more than they gain.

Looks at: workers relative to cores, the seconds of real work per batch relative to the wait for it, stalls.
Why: Every worker is a process that competes for the same cores and hands over each batch through shared
    memory; cheap samples are faster to make in place. Twice as many workers as cores take the cores from the
    model even if no batch is waited for.
Remedy: fewer workers; none at all if a batch is cheaper to make than to hand over.
Gain: the step with the loader's work done in the best number of workers, without the stalls.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import loading
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import Change, Saving, saved
from monitor.advice.rule import Advice, rule
from monitor.model import units
from monitor.model.run import Phase

CALM_LOOP = 0.75
"""Undisturbed, the loop takes this share of its median step, which suffers from caches others have used."""
CALM = 0.5
"""Done in the loop, fetching takes this share of its time in a crowd of workers."""
SHARED_SECONDS = 0.0004
"""Cost of putting a batch of a few tensors into shared memory. An estimate for two cores."""
COLLATE_LEAST = 0.15
"""At least this share of the collate remains in the loop."""
DOUBT = Bounds(low=1.8, likely=1.0, high=0.5)
"""Factors on what a batch costs in the loop. Judgement."""
IN_PLACE_WORK = 0.9
"""Share of a batch's work that remains in the loop: no shared memory, no queue."""
FEWER_MARGIN = 1.05
"""With fewer workers, the step takes at most this multiple of what the model says."""
CROWD_SAVED = Bounds(low=0.3, likely=1.0, high=2.0)
"""Factors on what idle workers cost. Judgement."""
ENOUGH_MARGIN = 1.5
"""Sufficient workers, as a multiple of those busy now."""
CROWD_MOST, CROWD_LEAST = 0.5, 0.1
"""Cost of idle workers: at most this share of the step, at least this share of the rest. Judgement."""


@rule(
    "input.too_many_workers",
    "Too many workers",
    settings=("loader.num_workers", "threads.torch"),
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
    in_place = run.model.rest + IN_PLACE_WORK * run.load_work
    oversubscribed = workers > max(2.0, run.policy.workers_per_core * cores)
    cheaper = in_place < run.policy.in_place_gain * run.model.period
    if not (oversubscribed or cheaper) or loading.waits(run):
        return None
    best = 0 if cheaper else max(1, int(cores) - (0 if run.has_cuda else 1))
    after = in_place if best == 0 else FEWER_MARGIN * max(run.model.rest, run.load_work / best)
    saved = run.model.period - after
    if saved <= 0:
        return None
    return Advice(
        title=f"Too many loader workers: {workers} on {units.whole(cores)} cores, a batch is "
        f"{units.seconds(run.load_work)} of work but {units.percent(loading.data_share(run))} of the step "
        "waits for it",
        remedy=f"Use num_workers={best}: "
        + (
            "a batch is cheaper to make in place than to hand over."
            if best == 0
            else "no more than the free cores."
        ),
        change=loading.with_workers(run, best),
        knobs=loading.worker_knobs(best),
        effect=loading.effect_of_workers(run, best),
        evidence={
            "num_workers": workers,
            "suggested_workers": best,
            "cores": cores,
            "batch_work_seconds": run.load_work,
            "data_seconds_per_step": run.model.wait,
        },
        gain=DOUBT.of(lambda doubt: _change(run, best, doubt)),
        because=f"the same batches take at most {units.seconds(after)} a step with num_workers={best}",
    )


def _change(run: RunContext, best: int, doubt: float) -> Change:
    """Fewer workers: the loop gets its core back (its median step shows how long it takes undisturbed), and
    in the loop a batch is made without shared memory."""
    medians = ((phase, phase.p50_seconds or 0.0) for phase in _disturbed(run))
    calm = sum(max(0.0, run.seconds(phase.name) - CALM_LOOP * median) for phase, median in medians)
    savings = (Saving("*", min(1.0, 2.0 - doubt) * calm, "crowd"),) if doubt < 2.0 else ()
    if best > 0:
        return Change(workers=best, savings=savings)
    loader, work = (run.lead.loader if run.lead else None), run.model.work
    collate = (loader.collate_seconds or 0.0) if loader else 0.0
    in_place = CALM * max(0.0, work - collate) + max(COLLATE_LEAST * collate, collate - SHARED_SECONDS)
    return Change(
        workers=0, work_left=min(1.0, doubt * in_place / work) if work > 0 else 1.0, savings=savings
    )


def _disturbed(run: RunContext) -> list[Phase]:
    """Phases of the loop with a known median."""
    phases = run.lead.phases if run.lead else ()
    return [phase for phase in phases if phase.name != "data" and phase.p50_seconds]


def _crowd(run: RunContext, cores: float) -> float:
    """From this many workers on, they take the cores from the model, waited for or not."""
    return max(run.policy.many_workers, run.policy.idle_workers_per_core * cores)


def _crowded(run: RunContext, workers: int, cores: float) -> Advice | None:
    """No batch is waited for, but there are so many workers that they take the cores from the model."""
    loader = run.lead.loader if run.lead else None
    busy = loader.worker_busy_ratio if loader else None
    if busy is None or busy > run.policy.workers_busy or workers < _crowd(run, cores):
        return None
    enough = max(1, min(int(cores), round(ENOUGH_MARGIN * busy * workers)))
    stalls = sum(stall.total_seconds for stall in run.run.stalls if stall.kind in ("forward", "backward"))
    steps = run.lead.steps if run.lead and run.lead.steps else 1
    lost = min(CROWD_MOST * run.model.period, stalls / steps + run.model.wait)
    return Advice(
        title=f"Too many loader workers: {workers} on {units.whole(cores)} cores, where {enough} would do: "
        f"a batch is {units.seconds(run.load_work)} of work, "
        f"and the workers are idle {units.percent(1.0 - busy)} of the time",
        remedy=f"Use num_workers={enough}: the other {workers - enough} processes take memory, start-up time "
        "and the cores the model computes on.",
        change=loading.with_workers(run, enough),
        knobs=loading.worker_knobs(enough),
        effect=loading.effect_of_workers(run, enough),
        evidence={
            "num_workers": workers,
            "suggested_workers": enough,
            "cores": cores,
            "batch_work_seconds": run.load_work,
            "worker_busy_ratio": busy,
            "stall_seconds": stalls,
        },
        gain=CROWD_SAVED.part_of(saved("*", max(lost, CROWD_LEAST * run.model.rest), "workers")),
        because="the model gets the cores, and the stalls caused by crowding disappear",
        severity="warning",
    )
