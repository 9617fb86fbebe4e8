"""The workers are restarted every epoch (or even every step).

Looks at: epochs and workers started, `persistent_workers`, the wait at the first step of an epoch; what
    starting and ending the workers of a validation's loader takes.
Why: Starting a worker forks or spawns a process, imports modules, and refills the queue from empty; short
    epochs pay for that again and again.
Remedy: `persistent_workers=True` and one DataLoader for the whole run; never `next(iter(loader))` in the
    loop.
Gain: the wait at epoch and validation starts, spread over the steps.
"""

from __future__ import annotations

from dataclasses import replace

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import frameworks, loading
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import Change, Saving
from monitor.advice.rule import Advice, rule
from monitor.model import units

EACH_STEP = 1.5
"""Fewer steps than this between two starts: the loop creates a new iterator for every batch."""
FRESH = 0.5
"""A worker that stays needs this share of what a fresh one needs per batch."""
EPOCH_SAVED, STEP_SAVED = Bounds(low=0.75, likely=1.0, high=1.1), Bounds(low=0.95, likely=1.0, high=1.1)
"""Share of the start-up cost that is saved: for starts at each epoch, and at every step. Judgement."""
SPAWN_FACTOR = 10
"""Cost of spawning a worker relative to forking it: it imports everything again."""
WORKER_SECONDS = 0.01
"""What each further worker adds to a start."""


@rule(
    "input.workers_restarted",
    "Workers restarted",
    settings=("loader.persistent_workers",),
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
    if per_step + _evaluating(run) < run.policy.phase_share * run.model.period:
        return None
    length = run.lead.steps / epochs
    share = sum(one.seconds for one in _saved(run, per_step, length, 1.0).savings) / run.model.period
    return Advice(
        title=f"Workers restarted {_when(run, length, epochs, workers)}, {run.of_time(share)}",
        remedy=_remedy(run, length),
        change="" if length < EACH_STEP else loading.with_workers(run, workers),
        knobs={"loader.persistent_workers": "on"},
        effect=loading.effect_of_workers(run, workers),
        price="memory of the workers between the epochs",
        evidence={
            "epochs_started": epochs,
            "workers_started": run.count("loader", "workers_started"),
            "num_workers": workers,
            "steps_per_epoch": length,
            "start_seconds": start,
            "start_share": share,
            "validation_starts": run.scalar("loader.evaluation_starts"),
            "validation_start_seconds": run.scalar("loader.evaluation_start_s"),
            "persistent_workers": run.setting("loader", "persistent_workers"),
        },
        gain=(EPOCH_SAVED if length >= EACH_STEP else STEP_SAVED).of(
            lambda part: _saved(run, per_step, length, part)
        ),
        share=share,
        because=f"about {units.seconds(start)} at each of {epochs} starts{_beside(run)}",
    )


def _start_seconds(run: RunContext, workers: int) -> float:
    """Cost of one start: measured as the wait at epoch starts, else the usual price of a fork."""
    measured = run.scalar("loader.first_wait_s")
    if measured:
        return measured
    stall = run.stall("data", "epoch")
    if stall is not None and stall.mean_seconds:
        return stall.mean_seconds
    spawn = SPAWN_FACTOR if run.setting("loader", "start_method") in ("spawn", "forkserver") else 1
    return run.policy.worker_start_seconds * spawn + WORKER_SECONDS * workers


def _evaluating(run: RunContext) -> float:
    """Seconds per step that starting and ending the workers of validations takes."""
    starts, each = (run.scalar(f"loader.evaluation_{name}") for name in ("starts", "start_s"))
    steps = run.lead.steps if run.lead else 0
    return min(starts * each / steps, run.seconds("validate")) if starts and each and steps else 0.0


def _recreated(run: RunContext) -> bool:
    started, workers = run.count("loader", "workers_started"), run.workers
    return bool(started and workers and started > workers)


def _saved(run: RunContext, per_step: float, length: float, factor: float) -> Change:
    """The starts, and what they cost the neighbouring steps. If every step starts workers, the old ones are
    also joined inside the step, and what remains is the usual hand-over from a worker that stays."""
    if length >= EACH_STEP:
        beside = max(0.0, run.cost_with_neighbours(per_step) - per_step)
        starts = Saving("data", factor * per_step, "workers_start")
        validations = Saving("validate", min(1.0, factor) * _evaluating(run), "workers_start")
        return Change(savings=(starts, validations, Saving("*", beside, "neighbours")))
    joined = max(0.0, run.seconds("forward") - run.seconds("backward"))
    asked = _asked_outside(run)
    model = run.model
    stays = replace(model, parts={"rest": model.rest - joined}, work=FRESH * model.work)
    usual = max(0.0, stays.loaded_period() - stays.rest)
    waited = max(0.0, model.wait - usual)
    return Change(
        savings=(
            Saving("data", min(1.0, factor) * waited, "workers_start"),
            Saving("forward", min(1.0, factor) * joined, "workers_end"),
            Saving("other", min(1.0, factor) * asked, "workers_start"),
        )
    )


def _asked_outside(run: RunContext) -> float:
    """Seconds per step that the line asking for the batch takes outside the wait for it: creating the
    iterator starts the workers, and dropping the previous one ends them."""
    line = run.hot("data")
    if line is None:
        return 0.0
    same = [spot for spot in run.hotspots if (spot.file, spot.line) == (line.file, line.line)]
    return sum(run.hot_seconds(spot) for spot in same if spot.phase == "other")


def _when(run: RunContext, length: float, epochs: int, workers: int) -> str:
    """How often; those of validations are counted by themselves, as there are often more of them."""
    often = _often(length)
    if length < EACH_STEP or not _evaluating(run):
        return f"every {often}: {epochs} times {workers} workers so far"
    starts = units.whole(run.scalar("loader.evaluation_starts") or 0.0)
    return f"every {often} and for each validation: {epochs} and {starts} times so far"


def _beside(run: RunContext) -> str:
    each = run.scalar("loader.evaluation_start_s") if _evaluating(run) else None
    return f", {units.seconds(each)} at each for a validation" if each else ""


def _often(length: float) -> str:
    return "step" if length < EACH_STEP else f"{units.whole(length)} steps"


def _remedy(run: RunContext, length: float) -> str:
    if length < EACH_STEP:
        return (
            "A new loader iterator is made for every step (`next(iter(loader))`): create it once before the "
            "loop and reuse it."
        )
    if run.setting("loader", "persistent_workers") is True:
        return (
            "The DataLoader is built again every epoch, so persistent workers cannot persist: build it once."
        )
    if run.setting("loader", "own") is False:
        return (
            "The workers end with each epoch, and a library makes the loader: if it takes no "
            "persistent_workers=True, load in the loop (num_workers=0)."
            + frameworks.setting(run, "workers", workers=0)
        )
    if _evaluating(run):
        return (
            "Set persistent_workers=True and build each DataLoader once, outside the epoch loop, that of the "
            "validation, too."
        )
    return "Set persistent_workers=True and build the DataLoader once, outside the epoch loop."
