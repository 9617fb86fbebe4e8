"""Much of the step is spent in the user's own code outside the model.

Looks at: work in the loop, with all it calls, that is neither a pass of the model nor of a more specific
    kind; whether a later step uses its result.
Why: Whatever runs in the loop on the host runs while the model waits.
Remedy: make it cheaper (one vectorised call) or do it ahead of time; do it less often only if nobody uses
    the result.
Gain: most of its time.
"""

from __future__ import annotations

from dataclasses import replace

from monitor.advice.context.run import RunContext
from monitor.advice.context.work import VALIDATE, Work
from monitor.advice.evidence import hot_lines
from monitor.advice.prediction.gain import Bounds, Outcomes
from monitor.advice.prediction.step_model import saved
from monitor.advice.rule import Advice, rule
from monitor.model import units
from monitor.model.finding import Effect

SAVED = Bounds(low=0.5, likely=0.9, high=1.0)
"""Share of the work that is saved if it is done at once or ahead of time. Judgement."""
INSTEAD = {
    "shuffle": "draw the indices of a batch with one `torch.randint(0, n, (k,))`, or permute once an epoch "
    "and slice; a permutation of everything costs as much as the data is long",
    "process": "do not start another program in every step; read it every few seconds, or from a thread",
    "network": "do not wait for the network in the loop; send it from a thread",
    "hash": "hash only what is saved, when it is saved",
    "sort": "keep it sorted or counted as it changes instead of going through everything",
}
"""What a library function does → what to do instead."""
PHASES = ("other", "between", "forward")
FEW_CALLS = 16
"""Judgement: fewer calls a step from one line are no loop worth doing at once."""
FREE_CORE = 0.5
"""Judgement: with less of a core left over, work beside the training delays it by as much as it takes."""
MOSTLY = 0.5
"""More than this share of a piece of work is what it is about."""
PLAYING = "rollout"
"""Where an agent plays: nothing there is part of what is learnt, whatever its results lead to. On a CPU it is
the environment's work and has to be done, as its moves are in any phase; a GPU waits for it."""


@rule("compute.user_code", "Own code in the loop")
def check(run: RunContext) -> Advice | None:
    own = [one for one in run.work if one.phase in PHASES and not _is_model(one) and not _sleeps(run, one)]
    own = [one for one in own if not one.moves]
    if run.lanes is not None:
        own += [one for one in run.work if one.phase == PLAYING and not one.module]
    own += [one for one in run.work if one.phase in (VALIDATE, PLAYING) and _makes_data(one)]
    work = max(own, key=run.hot_seconds, default=None)
    if work is None or run.period is None:
        return None
    pieces = [one for one in hot_lines.alike(run, work) if one in own]
    cost = sum(map(run.hot_seconds, pieces))
    if cost < run.policy.user_code_share * run.period:
        return None
    if (
        sum(one.share for one in pieces) < run.policy.hot_share
        and cost < run.policy.user_code_step_share * run.period
    ):
        return None
    spot = hot_lines.hottest(run, work)
    if _as_it_should_be(run, work):
        return None
    job = next((one.job for one in (spot, work) if one is not None and one.job in INSTEAD), "")
    where = "between the steps" if work.phase == "between" else "in the step, outside the model"
    inside = f", most of it at {spot.text}" if spot and spot.place != work.place else ""
    return Advice(
        title=f"Your own code {where}: {work.text}, {units.seconds(cost)} a step "
        f"({units.percent(cost / run.period)}){_others(pieces)}{inside}",
        remedy=_remedy(work, job),
        effect=_effect(work, job),
        avoid=""
        if work.needed == "no"
        else "Doing it once, or less often: a later step reads what it makes.",
        evidence={"needed": work.needed, **hot_lines.evidence(run, spot)},
        gain=_without(run, work, cost),
        because=f"{units.seconds(cost)} of {units.seconds(run.period)} a step is this work",
    )


def _without(run: RunContext, work: Work, cost: float) -> Outcomes:
    """On a device, launches and waits look alike: it may be the whole phase."""
    found = SAVED.part_of(saved(work.phase, cost, work.place))
    if run.lanes is None:
        return found
    return replace(found, high=saved(work.phase, run.seconds(work.phase), work.place))


def _as_it_should_be(run: RunContext, work: Work) -> bool:
    """What is drawn anew for every step cannot be kept; all of it in a few calls of tensors cannot be done at
    once any more; and where no core is free, nobody makes it ahead of time."""
    lines = [one for one in run.hotspots if one.piece == (work.file, work.line) and one.phase == work.phase]
    known = sum(one.share for one in lines if one.once and 0.0 < (one.calls or 0.0) < FEW_CALLS)
    free = (run.cores or 1.0) - run.main_threads
    return work.random and known >= MOSTLY * sum(one.share for one in lines) and free < FREE_CORE


def _others(pieces: list[Work]) -> str:
    """ " together with 2 further calls", of the same function."""
    more = len(pieces) - 1
    return f" together with {more} further call{'s'[: more > 1]}" if more else ""


def _sleeps(run: RunContext, work: Work) -> bool:
    """Most of it is a sleep, which is a cause of its own, even where the gain is too unsure for a warning."""
    spot = hot_lines.hottest(run, work)
    return spot is not None and spot.job == "sleep" and run.hot_seconds(spot) > MOSTLY * run.hot_seconds(work)


def _makes_data(work: Work) -> bool:
    """Between passes without gradients, but for the loss: a sample of what an agent has seen. What changes
    something, as the environment's next move does, has to be done in its turn."""
    return work.feeds and work.pure and work.needed == "yes" and not _is_model(work)


def _is_model(work: Work) -> bool:
    """A pass of a model, whatever its purpose, or part of what is learnt."""
    return work.module or work.grad or work.in_forward


def _remedy(work: Work, job: str) -> str:
    if job:
        return f"At {work.place}: {INSTEAD[job]}."
    ahead = "make it ahead of time (in the loader's workers, in a thread)"
    if work.needed == "yes":
        return f"The step uses what {work.place} makes: do it in one vectorised call, or {ahead}."
    return f"Do the work at {work.place} in one vectorised call, or {ahead}; if no step reads it, less often."


def _effect(work: Work, job: str) -> Effect | None:
    if job == "shuffle":
        return "in_expectation"
    return "identical" if job in ("process", "network", "hash") and work.needed == "no" else None
