"""The most a remedy can give. It removes at most what its evidence names, once, and the cores and the device
still have their own work to do: whatever a rule predicts, no gain is shown above these limits.
"""

from __future__ import annotations

from math import exp

from monitor.advice.prediction.gain import (
    MAX_SPEEDUP,
    Outcomes,
    at_most,
    doubts,
    plain_ratio,
    ratio,
    speedup,
)
from monitor.advice.prediction.step_model import LEAST_CORES, Change, StepModel
from monitor.model.finding import Speedup

ON_DEVICE = frozenset(("forward", "backward", "optimizer", "validate", "*"))
"""Parts in which the device computes: a change of these may shorten the device's own work."""
NOISE = 1.06
"""What two runs of one script differ by when the device decides: its work takes the same time in both, the
host's share of it does not."""


def removed_share(model: StepModel, outcomes: Outcomes) -> float:
    """Share of the step that goes for the most gain a rule claims, within the limits of cores and device."""
    most = outcomes.most
    if model.lanes is not None and most.everything == 1.0:
        return share_of(NOISE * at_most(model, outcomes))  # it was played with cores and device
    return share_of(min(plain_ratio(model, most), _cores_limit(model, most), _device_limit(model, most)))


def _cores_limit(model: StepModel, change: Change) -> float:
    """With workers, the loop's own core and the loader's work still have to fit into the cores."""
    after = model.apply(change)
    if after.workers <= 0 or change.batch != 1.0 or change.everything != 1.0:
        return MAX_SPEEDUP
    least = (after.rest + after.work * after.work_cpu) / max(after.cores, LEAST_CORES)
    return max(1.0, model.period / least) if least > 0 else MAX_SPEEDUP


def _device_limit(model: StepModel, change: Change) -> float:
    """What does not shorten the device's own work leaves its busy time."""
    if computes_on_device(change) or not model.device_busy:
        return MAX_SPEEDUP
    return max(1.0, 1.0 / model.device_busy)


def computes_on_device(change: Change) -> bool:
    """Whether it may shorten what the device itself computes."""
    whole = change.batch != 1.0 or change.everything != 1.0 or change.device_left != 1.0
    return whole or any(saving.part in ON_DEVICE for saving in change.savings)


def share_of(gain: float) -> float:
    """The share of the time that must be saved for this gain."""
    return 1.0 - 1.0 / max(1.0, gain)


def most_gain(share: float) -> float:
    """The gain when all of this share of the time goes."""
    return 1.0 / max(1.0 / MAX_SPEEDUP, 1.0 - min(1.0, max(0.0, share)))


def within(
    gain: Speedup, share: float, model: StepModel | None = None, most: Change | None = None
) -> Speedup:
    """The gain as far as removing this share of the time allows: the likely one no further. The range ends as
    far beyond as the doubt about what was measured goes, and the caches that stay warm without `most`: they
    do so however well it was measured. Where host and device were played again, that has shown how far it can
    go."""
    limit = most_gain(share)
    likely = min(gain.likely, limit)
    if model is not None and model.lanes is not None:
        return speedup(min(gain.low, limit), likely, min(gain.high, limit), gain.why)
    warm = _warmer(model, most) if model is not None and most is not None else 1.0
    high = min(gain.high, max(limit, likely * exp(doubts(likely)[1])) * warm)
    return speedup(min(gain.low, limit), likely, high, gain.why)


def _warmer(model: StepModel, change: Change) -> float:
    """How many times as fast the rest may go besides, because its caches stay warm."""
    return max(1.0, ratio(model, change) / plain_ratio(model, change))
