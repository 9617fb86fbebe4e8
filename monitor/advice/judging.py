"""What the rules say about a run or the machine, minus what a more specific cause explains."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from monitor.advice.context.machine import MachineContext
from monitor.advice.context.run import RunContext
from monitor.advice.finding import make
from monitor.advice.guard import Ask, unguarded
from monitor.advice.prediction.critical import probed
from monitor.advice.prediction.gain import Outcomes
from monitor.advice.prediction.limit import computes_on_device
from monitor.advice.prediction.step_model import Change
from monitor.advice.ranking import SEVERITY_ORDER
from monitor.advice.rule import Advice, Rule, all_rules
from monitor.model.finding import Finding, VerifiedOn

NO_ERRORS: Mapping[str, float] = {}
ACROSS_RANKS = "distributed."
"""Area of rules that compare the ranks of a run."""
FAILED = ("failed", "killed")
"""Runs that did not finish: what was seen of them does not show how long they would have taken."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding plus what the engine needs: what it silences, and what its remedy changes."""

    finding: Finding
    suppresses: tuple[str, ...] = ()
    outcomes: Outcomes | None = None


def judge_machine(context: MachineContext, ask: Ask = unguarded) -> list[Judged]:
    """All findings about GPUs and the host."""
    judged: list[Judged] = []
    for rule in all_rules():
        if rule.scope == "machine":
            judged += ask(rule.id, partial(_about_machine, context, rule), [])
    return judged


def _about_machine(context: MachineContext, rule: Rule) -> list[Judged]:
    found = [_unverified(make(rule, advice, context.policy, None, None)) for advice in rule.check(context)]
    return [Judged(finding) for finding in found if finding is not None]


def _unverified(finding: Finding | None) -> Finding | None:
    """Readings came from the driver, but the gain of a remedy was never measured on a card."""
    if finding is None or finding.speedup is None:
        return finding
    return replace(finding, speedup=replace(finding.speedup, verified_on="none"))


Errors = Mapping[str, float]
"""Rule → how far its predictions were off on such a machine: the median of |predicted / realised - 1|."""


def judge_run(
    context: RunContext,
    about_gpus: Sequence[Finding] = (),
    ask: Ask = unguarded,
    errors: Errors = NO_ERRORS,
) -> list[Judged]:
    """All findings about one run; the closing rules also see those about its GPUs."""
    judged: list[Judged] = []
    for rule in all_rules():
        if rule.scope == "run" and (not rule.steps or context.reliable):
            judged += ask(rule.id, partial(_about_run, context, rule, errors), [])
    judged = suppress(judged)
    for rule in all_rules():
        if rule.scope == "closing" and context.reliable:
            said = [*about_gpus, *(one.finding for one in judged)]
            judged += ask(rule.id, partial(_about_run, context, rule, errors, said), [])
    return judged


def judge_nodes(context: RunContext) -> list[Judged]:
    """What can be said of a run that is known by its metrics only: how its ranks and machines compare."""
    rules = (rule for rule in all_rules() if rule.id.startswith(ACROSS_RANKS))
    said = [_about_run(context, rule, NO_ERRORS) for rule in rules if not rule.steps or context.reliable]
    return suppress([one for some in said for one in some])


def _about_run(context: RunContext, rule: Rule, errors: Errors, *said: list[Finding]) -> list[Judged]:
    return _judged(context, rule, rule.check(context, *said), errors)


def _judged(context: RunContext, rule: Rule, advice: Advice | None, errors: Errors) -> list[Judged]:
    if advice is None or _waits_for_the_device(context, advice):
        return []
    model = context.model if advice.gain is not None and not context.lanes_contradict else None
    places = probed(context.run)
    finding = make(rule, advice, context.policy, model, context.run.id, errors.get(rule.id), places)
    if finding is not None and finding.speedup is not None:
        finding = replace(finding, speedup=replace(finding.speedup, verified_on=_backing(context, advice)))
    if finding is not None and context.run.state in FAILED:
        finding = replace(finding, speedup=None, share=None)
    return [] if finding is None else [Judged(finding, rule.suppresses, advice.gain)]


def _waits_for_the_device(context: RunContext, advice: Advice) -> bool:
    """The device has work nearly all the time, but there is no replay to tell the host's work from its
    waiting: what would only save the host's time is then no cause."""
    busy = context.lanes_contradict and context.a_device_is_busy
    return busy and advice.gain is not None and not computes_on_device(advice.gain.likely)


def _backing(context: RunContext, advice: Advice) -> VerifiedOn:
    """What backs this prediction: on a GPU, host times show launching and waiting, and how much faster the
    device itself would compute was never verified."""
    if not context.has_cuda:
        return "cpu"
    measured = context.lead is not None and context.lead.device_times.measured_steps > 0
    known = advice.gain is not None and not _assumes(context, advice.gain.likely)
    return "gpu" if measured and known else "none"


def _assumes(context: RunContext, change: Change) -> bool:
    """Whether the gain depends on how fast the device computes. If the device's lane is known, host time
    saved in a phase closes device gaps that were measured there."""
    if context.lanes is not None:
        return change.device_left != 1.0 or change.batch != 1.0 or change.everything != 1.0
    return computes_on_device(change)


def suppress(judged: list[Judged]) -> list[Judged]:
    """Drops those explained by a more specific cause; a hint never silences a warning."""
    return [one for one in judged if not any(_silences(other, one) for other in judged)]


def _silences(other: Judged, one: Judged) -> bool:
    order = SEVERITY_ORDER
    return (
        _covers(other.suppresses, one.finding.id)
        and other.finding.id != one.finding.id
        and order[other.finding.severity] <= order[one.finding.severity]
    )


def _covers(patterns: Iterable[str], id: str) -> bool:
    return any(fnmatch.fnmatchcase(id, pattern) for pattern in patterns)
