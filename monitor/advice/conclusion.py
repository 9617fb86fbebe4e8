"""The conclusion from a run's findings: the gain of all remedies together, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from monitor.advice.confirmation import is_steady
from monitor.advice.prediction.combined import Promise, combined_gain
from monitor.advice.prediction.gain import Outcomes
from monitor.advice.prediction.limit import most_gain
from monitor.advice.prediction.step_model import StepModel
from monitor.model.finding import SERIOUS, Finding, FindingKey, Speedup
from monitor.model.policy import Policy
from monitor.model.run import Run
from monitor.model.verdict import Verdict

Changes = Mapping[FindingKey, Outcomes | None]
"""How the remedy of each finding changes the step."""


def uncontradicted(findings: Sequence[Finding]) -> list[Finding]:
    """Without those that say a run has no cause beside a cause of it. A finding outlasts its evidence by some
    ticks, so the two may be shown at once."""
    troubled = {one.run for one in findings if one.severity != "healthy"}
    return [one for one in findings if one.severity != "healthy" or one.run not in troubled]


def combined_of(findings: Sequence[Finding], changes: Changes, model: StepModel | None) -> Speedup | None:
    """The gain of all remedies together. `findings` are those of a run and its GPUs, ranked."""
    serious = [finding for finding in findings if finding.severity in SERIOUS]
    promises = [
        Promise(finding.speedup, finding.share, changes.get(finding.key))
        for finding in serious
        if finding.speedup is not None and finding.share is not None and finding.speedup.likely > 1.0
    ]
    why = f"all of: {', '.join(sorted({finding.id for finding in serious}))}"
    return combined_gain(model, promises, why)


def steady_combined(new: Speedup | None, old: Speedup | None, findings: Sequence[Finding]) -> Speedup | None:
    """Stays as last shown while the new range allows it; never below the best remedy alone, nor above what
    all of them remove."""
    if old is None or not is_steady(new, old):
        return new
    serious = [one for one in findings if one.severity in SERIOUS]
    best = max((one.speedup.likely for one in serious if one.speedup), default=1.0)
    most = most_gain(sum(one.share or 0.0 for one in serious))
    return old if best <= old.likely and old.high <= most else new


def verdict(run: Run, findings: Sequence[Finding], combined: Speedup | None, policy: Policy) -> Verdict:
    """What to do first about a run, from its ranked findings."""
    first = next(iter(findings), None)
    if first is None:
        return Verdict("unknown", steps=run.steps, lost=run.lost)
    if first.severity == "healthy":
        return Verdict("healthy", first.headline, rule=first.id, remedy=first.remedy.summary)
    return _to_fix(first, combined, policy)


def _to_fix(first: Finding, combined: Speedup | None, policy: Policy) -> Verdict:
    likely = first.speedup.likely if first.speedup else 1.0
    more = combined is not None and combined.likely > policy.hint_gain * likely
    return Verdict(
        "fix" if first.severity in SERIOUS else "hint",
        first.headline,
        rule=first.id,
        remedy=first.remedy.summary,
        gain=likely if likely >= policy.hint_gain else None,
        note=first.speedup.note if first.speedup else "",
        combined=combined.likely if combined is not None and more else None,
    )
