"""The workers are started again every epoch (or even every step).

Looks at: epochs and workers started, `persistent_workers`, the wait at the first step of an epoch.
Why: Starting a worker forks or spawns a process, imports, and refills the queue from empty; short epochs
    pay that again and again.
Remedy: `persistent_workers=True` and one DataLoader for the whole run; never `next(iter(loader))` in the
    loop.
Gain: the wait at epoch starts, spread over the steps.
"""

from __future__ import annotations

from dataclasses import replace

from monitor.advice import loading
from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving

EACH_STEP = 1.5
"""Fewer steps than this between two starts: the loop makes a new iterator for every batch."""
FRESH = 0.5
"""A worker that stays needs this share of what a fresh one needs for a batch."""


@rule(
    "input.workers_restarted",
    suppresses=(
        "input.bound",
        "input.too_few_workers",
        "input.prefetch_low",
        "input.too_many_workers",
        "input.slow_getitem",
        "trend.periodic_stalls",
        "input.cpu_saturated",
    ),
    bonus=0.5,
)
def check(run: RunContext) -> Advice | None:
    workers, epochs = run.workers, run.count("loader", "epochs_started")
    if not workers or not epochs or epochs < 2 or not run.lead or run.lead.steps < 2:
        return None
    if run.setting("loader", "persistent_workers") is True and not _recreated(run):
        return None
    start = _start_seconds(run, workers)
    per_step = min(start * epochs / run.lead.steps, run.model.wait)
    if per_step < run.policy.phase_share * run.model.period:
        return None
    length = run.lead.steps / epochs
    return Advice(
        title=f"Workers restarted every {_often(length)}: {epochs} times {workers} workers so far, "
        f"{percent(per_step / run.model.period)} of the time",
        remedy=_remedy(run, length),
        change=_change(run, workers, length),
        evidence={
            "epochs_started": epochs,
            "workers_started": run.count("loader", "workers_started"),
            "num_workers": workers,
            "steps_per_epoch": length,
            "start_seconds": start,
            "persistent_workers": run.setting("loader", "persistent_workers"),
        },
        what=_saved(run, per_step, length, 1.0),
        low=_saved(run, per_step, length, 0.75 if length >= EACH_STEP else 0.95),
        high=_saved(run, per_step, length, 1.1),
        because=f"about {seconds(start)} at each of {epochs} starts",
    )


def _start_seconds(run: RunContext, workers: int) -> float:
    """What one start costs: measured as the wait at epoch starts, else the usual price of a fork."""
    measured = run.scalar("loader.first_wait_s")
    if measured:
        return measured
    stall = run.stall("data", "epoch")
    if stall is not None and stall.mean_seconds:
        return stall.mean_seconds
    spawn = 10 if run.setting("loader", "start_method") in ("spawn", "forkserver") else 1
    return run.policy.worker_start_seconds * spawn + 0.01 * workers


def _recreated(run: RunContext) -> bool:
    started, workers = run.count("loader", "workers_started"), run.workers
    return bool(started and workers and started > workers)


def _saved(run: RunContext, per_step: float, length: float, factor: float) -> Change:
    """The starts, and what they cost the steps beside them. When every step starts workers, the old ones
    are joined inside the step, too, and what is left is the usual hand-over from a worker that stays."""
    if length >= EACH_STEP:
        beside = max(0.0, run.saved_beyond(per_step) - per_step)
        savings = (Saving("data", factor * per_step, "workers_start"), Saving("*", beside, "workers_beside"))
        return Change(savings=savings)
    joined = max(0.0, run.seconds("forward") - run.seconds("backward"))
    model = run.model
    stays = replace(model, parts={"rest": model.rest - joined}, work=FRESH * model.work)
    usual = max(0.0, stays.loaded_period() - stays.rest)
    waited = max(0.0, model.wait - usual)
    return Change(
        savings=(
            Saving("data", min(1.0, factor) * waited, "workers_start"),
            Saving("forward", min(1.0, factor) * joined, "workers_end"),
        )
    )


def _often(length: float) -> str:
    return "step" if length < EACH_STEP else f"{length:.0f} steps"


def _remedy(run: RunContext, length: float) -> str:
    if length < EACH_STEP:
        return (
            "A new loader iterator is made for every step (`next(iter(loader))`): make it once before the "
            "loop and keep asking it."
        )
    if run.setting("loader", "persistent_workers") is True:
        return (
            "The DataLoader is built anew every epoch, so persistent workers cannot persist: build it once."
        )
    return "Set persistent_workers=True and build the DataLoader once, outside the epoch loop."


def _change(run: RunContext, workers: int, length: float) -> str:
    if length < EACH_STEP:
        once = "+ batches = iter(loader)   # once, before the loop"
        return f"{once}\n- batch = next(iter(loader))\n+ batch = next(batches)"
    return loading.loader_line(
        run, f"num_workers={workers}", f"num_workers={workers}, persistent_workers=True"
    )
