"""What all remedies of a run would gain together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from monitor.advice.prediction.gain import Outcomes, predict
from monitor.advice.prediction.limit import removed_share, within
from monitor.advice.prediction.step_model import StepModel, combine
from monitor.model.finding import Speedup, VerifiedOn


class Promise(NamedTuple):
    """The predicted gain of one remedy, the share of the time it concerns, and its change to the step, if it
    is one."""

    gain: Speedup
    share: float
    outcomes: Outcomes | None = None


def combined_gain(model: StepModel | None, promises: Sequence[Promise], why: str) -> Speedup | None:
    """Applies all changes to the step at once, counting no second twice: never less than the best remedy
    alone, and never more than removing everything they name.

    A gain that is not a change to the step (clocks, falling throughput) may concern the same seconds as
    another, so it is a lower bound for the whole and never added. None if no remedy promises anything.
    """
    if not promises:
        return None
    known = [one.gain for one in promises]
    changing = [one for one in promises if one.outcomes is not None]
    if model is not None and changing:
        known.append(_all_at_once(model, changing, why))
    return Speedup(
        low=max(gain.low for gain in known),
        likely=max(gain.likely for gain in known),
        high=max(gain.high for gain in known),
        why=why,
        verified_on=_weakest(one.gain.verified_on for one in promises),
    )


def _weakest(known: Iterable[VerifiedOn]) -> VerifiedOn:
    """A combined prediction is no better than its weakest part."""
    found = set(known)
    return "none" if "none" in found else "gpu" if "gpu" in found else "cpu"


def _all_at_once(model: StepModel, promises: Sequence[Promise], why: str) -> Speedup:
    changes = [one.outcomes for one in promises if one.outcomes is not None]
    likely, most = combine(one.likely for one in changes), combine(one.most for one in changes)
    union = min(removed_share(model, Outcomes(most)), sum(one.share for one in promises))
    return within(predict(model, Outcomes(likely), why), union, model)
