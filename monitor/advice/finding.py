"""From a rule's answer to a finding: prediction, severity, and words for numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.advice.policy import Policy
from monitor.advice.rule import Advice, Rule
from monitor.advice.whatif import StepModel, at_least, predict
from monitor.snapshot import Finding, Remedy, Severity, Speedup


def make(
    rule: Rule, advice: Advice, policy: Policy, model: StepModel | None, run: str | None
) -> Finding | None:
    """The finding, or None when its gain is not worth a reader's time."""
    speedup, surely = advice.speedup, None
    if speedup is None and advice.what is not None and model is not None:
        speedup = predict(model, advice.what, advice.low, advice.high, advice.because)
        surely = at_least(model, advice.what, advice.low)
    severity = advice.severity or by_gain(speedup, policy, surely)
    if severity is None:
        return None
    return Finding(
        id=rule.id,
        severity=severity,
        title=advice.title,
        run=advice.run or run,
        rank=advice.rank,
        gpu=advice.gpu,
        evidence=rounded(advice.evidence),
        remedy=Remedy(advice.remedy, advice.change),
        speedup=speedup,
        why=rule.doc.get("Why", ""),
    )


def by_gain(speedup: Speedup | None, policy: Policy, surely: float | None = None) -> Severity | None:
    """Severity from what the remedy is likely to gain. What it gains at least is the rule's word, not the
    range's low end: that two runs differ makes a cause no less of a cause."""
    if speedup is None:
        return "hint"
    if speedup.likely < policy.hint_gain:
        return None
    least = speedup.low if surely is None else surely
    sure = speedup.likely >= policy.warning_gain and least >= policy.low_gain
    return "warning" if sure else "hint"


def rounded(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Evidence with four significant digits and without what is unknown."""
    return {
        key: float(f"{value:.4g}") if isinstance(value, float) else value
        for key, value in evidence.items()
        if value is not None
    }


def seconds(value: float | None) -> str:
    """ "3.1 ms", "420 µs", "2.4 s"."""
    if value is None:
        return "an unknown time"
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}" if value < 100 * scale else f"{value / scale:.0f} {unit}"
    return f"{value * 1e6:.0f} µs"


def percent(ratio: float) -> str:
    return f"{ratio * 100:.0f} %"


def size(count: float) -> str:
    """ "1.5 GiB"."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.3g} {unit}" if value < 100 else f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.3g} TiB"
