"""What is wrong with a run over many machines: what their daemons found, and what only shows when all ranks
are put side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from monitor.advice.confirmation import since
from monitor.advice.context.run import RunContext
from monitor.advice.judging import ACROSS_RANKS, judge_nodes
from monitor.advice.ranking import ranked
from monitor.advice.rule import Rule, all_rules
from monitor.fleet.api import Sample
from monitor.fleet.join import node_names
from monitor.fleet.told import Told
from monitor.model.finding import Finding, Remedy, Severity, Speedup

SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "hint")
"""The worst first. That a run is healthy on one machine says nothing about the whole."""


def findings_of(context: RunContext, told: Told) -> tuple[Finding, ...]:
    across = [since(one, told.at).finding for one in judge_nodes(context)]
    several = len(context.run.nodes) > 1
    own = [
        one for one in _reported(context.run.id, told) if not (several and one.id.startswith(ACROSS_RANKS))
    ]
    return ranked([*across, *own])


def _reported(run: str, told: Told) -> Iterable[Finding]:
    """One finding a rule, however many machines report it."""
    rules = {rule.id: rule for rule in all_rules()}
    by_rule: dict[str, list[Sample]] = {}
    for one in told.now.get("gpumon_finding_active", ()):
        if one.value == 1.0 and one.labels.get("severity") in SEVERITIES:
            by_rule.setdefault(one.labels.get("rule", ""), []).append(one)
    for id, samples in by_rule.items():
        yield _finding(run, told, id, samples, rules.get(id))


def _finding(run: str, told: Told, id: str, samples: list[Sample], rule: Rule | None) -> Finding:
    names = node_names(told)
    instances = sorted({one.labels.get("instance", "") for one in samples})
    where = [names.get(instance, instance) for instance in instances]
    cause = rule.cause if rule is not None else id
    return Finding(
        id=id,
        severity=min((_severity(one.labels) for one in samples), key=SEVERITIES.index),
        title=f"{cause}, found on {_listed(where)}",
        headline=cause,
        cause=cause,
        run=run,
        evidence={"nodes": where},
        remedy=_remedy(rule, where[0]),
        speedup=_speedup(told, id),
        since=_since(told, id),
        why=rule.doc.get("Why", "") if rule is not None else "",
    )


def _remedy(rule: Rule | None, node: str) -> Remedy:
    """In general: the change in the run's own words is with the daemon that found it."""
    general = rule.doc.get("Remedy", "") if rule is not None else ""
    return Remedy(f"{general} The evidence is on {node}.".strip())


def _severity(labels: Mapping[str, str]) -> Severity:
    return next(one for one in SEVERITIES if one == labels.get("severity"))


def _speedup(told: Told, id: str) -> Speedup | None:
    """The most cautious of what the machines predict: a run is as fast as its slowest rank."""
    found: dict[str, float] = {}
    for one in told.now.get("gpumon_finding_predicted_speedup_ratio", ()):
        if one.labels.get("rule") == id:
            estimate = one.labels.get("estimate", "")
            found[estimate] = min(one.value, found.get(estimate, one.value))
    if not {"low", "likely", "high"} <= set(found):
        return None
    return Speedup(found["low"], found["likely"], found["high"], "predicted by the daemon that found it")


def _since(told: Told, id: str) -> float | None:
    named = told.now.get("gpumon_finding_since_timestamp_seconds", ())
    return min((one.value for one in named if one.labels.get("rule") == id), default=None)


def _listed(names: list[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
