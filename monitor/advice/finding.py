"""Turns a rule's answer into a finding, with prediction and severity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.advice.prediction.critical import UNKNOWN, Places, critical_share
from monitor.advice.prediction.gain import at_least, predict, widened
from monitor.advice.prediction.limit import most_gain, removed_share, share_of, within
from monitor.advice.prediction.step_model import StepModel
from monitor.advice.rule import Advice, Rule
from monitor.model.finding import Finding, Remedy, Severity, Speedup
from monitor.model.policy import Policy


def make(
    rule: Rule,
    advice: Advice,
    policy: Policy,
    model: StepModel | None,
    run: str | None,
    error: float | None = None,
    places: Places = UNKNOWN,
) -> Finding | None:
    """The finding, or None if its gain is not worth a reader's time. `error` is how far its rule's past
    predictions were off; `places` tells how critical parts of the loop are, where that was probed."""
    speedup, share, least = _promise(advice, model, error, places)
    severity = advice.severity or by_gain(speedup, policy, least)
    if severity is None:
        return None
    if speedup is not None and speedup.high <= 1.0:
        speedup = share = None
    return Finding(
        id=rule.id,
        severity=severity,
        title=f"{advice.title}; {advice.detail}" if advice.detail else advice.title,
        headline=advice.title,
        cause=rule.cause,
        run=run,
        rank=advice.rank,
        gpu=advice.gpu,
        evidence=rounded({**advice.evidence, **_played(advice, model, share)}),
        remedy=Remedy(
            summary=advice.remedy,
            change=advice.change,
            settings=rule.settings,
            knobs=dict(advice.knobs),
            effect=advice.effect,
            price=advice.price,
            avoid=advice.avoid,
        ),
        speedup=speedup,
        share=share,
        why=rule.doc.get("Why", ""),
    )


def _played(advice: Advice, model: StepModel | None, share: float | None) -> dict[str, float]:
    """If the step was replayed: the largest share of it that can be saved."""
    played = share is not None and advice.gain is not None and model is not None and model.lanes is not None
    return {"at_most_share": share} if played and share is not None else {}


def _promise(
    advice: Advice, model: StepModel | None, error: float | None, places: Places
) -> tuple[Speedup | None, float | None, float | None]:
    """The predicted gain, never above what the evidence removes; the largest share of the time it can save;
    and the rule's own lower bound. A gain not backed by a share of the time is not a promise."""
    if advice.speedup is not None:
        if advice.share is None:
            return None, None, None
        gain = within(widened(advice.speedup, error), advice.share)
        return gain, max(advice.share, share_of(gain.high)), None
    if advice.gain is None or model is None:
        return None, None, None
    share = removed_share(model, advice.gain)
    share = share if advice.share is None else min(share, advice.share)
    share = min(share, critical_share(model, advice.gain.most, places))
    least = min(at_least(model, advice.gain), most_gain(share))
    predicted = widened(predict(model, advice.gain, advice.because), error)
    gain = within(predicted, share, model, advice.gain.most)
    return gain, max(share, share_of(gain.high)), least


def by_gain(speedup: Speedup | None, policy: Policy, least: float | None = None) -> Severity | None:
    """Severity from the likely gain. `least` is the rule's own lower bound: the low end of the range also
    includes noise between two runs, which does not make a cause any less real."""
    if speedup is None:
        return "hint"
    if speedup.likely < policy.hint_gain:
        return None
    least = speedup.low if least is None else least
    worth = speedup.likely >= policy.warning_gain and least >= policy.low_gain
    return "warning" if worth else "hint"


def rounded(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Evidence rounded to four significant digits, without unknown values."""
    return {
        key: float(f"{value:.4g}") if isinstance(value, float) else value
        for key, value in evidence.items()
        if value is not None
    }
