"""What a recording rule and an alert are, and how they become Prometheus YAML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from monitor.advice.rule import all_rules
from monitor.model.policy import DEFAULT_POLICY

POLICY = DEFAULT_POLICY
DOCS: Mapping[str, Mapping[str, str]] = {rule.id: rule.doc for rule in all_rules()}
"""Advice rule id → the parts of its documentation."""

OWN_IDS = {
    "cluster.gpu_starved": "A GPU that trains does little work.",
    "cluster.finding": "The advice engine reports something critical that has no alert of its own.",
    "monitor.down": "Prometheus cannot reach a gpumon daemon.",
    "monitor.source_down": "The daemon gets no GPU readings.",
    "monitor.collector_failing": "A part of the daemon fails.",
    "monitor.snapshot_stale": "The daemon answers but makes no new snapshot.",
    "monitor.left_out": "Caps keep runs, ranks, scalars or findings out of the metrics.",
}
"""Ids of alerts about what one machine's advice cannot see: the fleet, and the monitor itself."""


def sentence(id: str) -> str:
    """What an id means, in one sentence."""
    return DOCS[id]["What"] if id in DOCS else OWN_IDS[id]


def duration(seconds: float) -> str:
    """A duration in Prometheus notation."""
    whole = round(seconds)
    return f"{whole // 60}m" if whole % 60 == 0 and whole else f"{whole}s"


def ratio(value: float) -> str:
    return f"{value:.0%}"


@dataclass(frozen=True, slots=True)
class Recording:
    """A figure Prometheus precomputes because dashboards of many machines need it."""

    record: str
    expr: str
    meaning: str
    labels: Mapping[str, str] = field(default_factory=dict)

    def to_yaml(self) -> dict[str, Any]:
        found: dict[str, Any] = {"record": self.record, "expr": self.expr.strip()}
        return found | ({"labels": dict(self.labels)} if self.labels else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert. `id` is the advice rule it shares its meaning and thresholds with."""

    name: str
    id: str
    expr: str
    hold: float
    """Seconds the condition must last."""
    severity: Literal["critical", "warning", "info"]
    summary: str
    description: str
    dashboard: Literal["run", "node", "cluster"]

    def to_yaml(self) -> dict[str, Any]:
        notes = {
            "summary": self.summary,
            "description": self.description,
            "dashboard": DASHBOARD_PATHS[self.dashboard],
        }
        if self.id in DOCS:
            remedy = DOCS[self.id]["Remedy"]
            notes |= {"why": DOCS[self.id]["Why"], "remedy": remedy[:1].upper() + remedy[1:]}
        return {
            "alert": self.name,
            "expr": self.expr.strip(),
            "for": duration(self.hold),
            "labels": {"severity": self.severity, "rule": self.id},
            "annotations": notes,
        }


FOUND = (
    'gpumon found:{{ range printf "max by (rule) (gpumon_finding_active{run=\\"%s\\", '
    'severity=~\\"critical|warning\\"})" .Labels.run | query }} {{ .Labels.rule }}{{ end }}.'
)
"""Alert text: the ids of the run's findings, queried when the alert fires."""

DASHBOARD_PATHS = {
    "run": "/d/gpumon-run?var-run={{ $labels.run }}",
    "node": "/d/gpumon-node?var-instance={{ $labels.instance }}",
    "cluster": "/d/gpumon-cluster",
}


def groups(named: Mapping[str, Iterable[Recording | Alert]]) -> dict[str, Any]:
    """Rule groups for the YAML file; evaluated at Prometheus's own interval."""
    return {
        "groups": [{"name": name, "rules": [one.to_yaml() for one in many]} for name, many in named.items()]
    }


def with_job(expr: str) -> str:
    """Joins the run's job: whom to notify, and what the job is called there."""
    return (
        f"({expr.strip()})\n* on (job, instance, run) group_left (name, user, slurm_job, pod) gpumon_run_info"
    )


def with_job_of_all(expr: str) -> str:
    """The same for a figure that covers all machines of a run; its pods differ, so they are left out."""
    return (
        f"({expr.strip()})\n* on (job, run) group_left (name, user, slurm_job) "
        "max by (job, run, name, user, slurm_job) (gpumon_run_info)"
    )
