"""docs/alerts.md: every recording rule and alert, generated from the code."""

from __future__ import annotations

from collections.abc import Iterable

from grafana.rules import alerts_gpu, alerts_monitor, alerts_run, recording
from grafana.rules.model import DOCS, Alert, Recording, duration, sentence

INTRO = """# Recording rules and alerts

Written by `python -m grafana.build` from `grafana/rules/`; a test fails when this page is stale. An alert's label
`rule` is the id of the advice rule it shares meaning and thresholds with ([rules.md](rules.md)); ids that begin with
`cluster.` or `monitor.` are about what a single machine's advice cannot see. Thresholds come from
`monitor/model/policy.py`: change them there, build again. Alerts about runs carry `name`, `user`, `slurm_job` and,
where one machine is meant, `pod`: route by them.

## Alerts

| alert | rule | severity | after | meaning |
|---|---|---|---|---|
"""


def page() -> str:
    alerts = (*alerts_gpu.ALERTS, *alerts_run.ALERTS, *alerts_monitor.ALERTS)
    head = "\n## Recording rules\n\n| series | labels | meaning |\n|---|---|---|\n"
    return (
        INTRO + "".join(map(_alert, alerts)) + head + "".join(_recordings((*recording.GPU, *recording.RUNS)))
    )


def _alert(alert: Alert) -> str:
    after = duration(alert.hold) if alert.hold else "at once"
    rule = f"[`{alert.id}`](rules.md)" if alert.id in DOCS else f"`{alert.id}`"
    return f"| `{alert.name}` | {rule} | {alert.severity} | {after} | {sentence(alert.id)} |\n"


def _recordings(rules: Iterable[Recording]) -> Iterable[str]:
    for rule in rules:
        labels = ", ".join(f"`{name}={value}`" for name, value in rule.labels.items()) or "—"
        yield f"| `{rule.record}` | {labels} | {rule.meaning} |\n"
