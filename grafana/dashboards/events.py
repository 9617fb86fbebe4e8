"""Annotations shared by several dashboards; the value of each query is a time in ms."""

from __future__ import annotations

from typing import Any

from grafana.layout import note

SAME = "on (job, instance, rule, run, uuid) group_left (severity)"


def findings(selector: str) -> Any:
    expr = (
        f"1000 * gpumon_finding_since_timestamp_seconds{{{selector}}} * {SAME} "
        'gpumon_finding_active{severity=~"critical|warning"}'
    )
    return note("Finding", expr, "{{rule}} ({{severity}}) {{run}}", "orange")


def run_begins(selector: str) -> Any:
    return note(
        "Run begins", f"1000 * gpumon_run_started_timestamp_seconds{{{selector}}}", "{{run}}", "green"
    )


def run_ends(selector: str) -> Any:
    return note("Run ends", f"1000 * gpumon_run_ended_timestamp_seconds{{{selector}}}", "{{run}}", "blue")


def xids(selector: str) -> Any:
    expr = f"1000 * gpumon_gpu_xid_last_timestamp_seconds{{{selector}}}"
    return note("XID", expr, "XID on GPU {{gpu}} of {{instance}}", "red")
