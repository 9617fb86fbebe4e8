"""What all remedies of a run would gain together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from monitor.advice.prediction.gain import Outcomes, predict
from monitor.advice.prediction.limit import removed_share, within
from monitor.advice.prediction.step_model import StepModel, combine
from monitor.model.finding import Speedup, VerifiedOn


class Promise(NamedTuple):
    """What one remedy is predicted to give, the share of the time it is about, and its change of the step
    where it is one."""

    gain: Speedup
    share: float
    outcomes: Outcomes | None = None


def combined_gain(model: StepModel | None, promises: Sequence[Promise], why: str) -> Speedup | None:
    """All changes of the step at once, no second counted twice: never less than the best remedy alone, and
    never more than removing all that they name.

    A gain without a change of the step (clocks, throughput that fell) may be about the same seconds as
    another: it is a lower bound of the whole, never added to it. None when no remedy promises anything.
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
    """A sum of predictions is no better than the worst of them."""
    found = set(known)
    return "none" if "none" in found else "gpu" if "gpu" in found else "cpu"


def _all_at_once(model: StepModel, promises: Sequence[Promise], why: str) -> Speedup:
    changes = [one.outcomes for one in promises if one.outcomes is not None]
    likely, most = combine(one.likely for one in changes), combine(one.most for one in changes)
    union = min(removed_share(model, Outcomes(most)), sum(one.share for one in promises))
    return within(predict(model, Outcomes(likely), why), union, model)
