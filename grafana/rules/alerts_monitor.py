"""Alerts about gpumon itself, and a catch-all for critical findings without their own alert."""

from __future__ import annotations

from grafana.rules.alerts_gpu import ALERTS as GPU
from grafana.rules.alerts_run import ALERTS as RUN
from grafana.rules.model import DOCS, Alert

STALE_SECONDS = 60
_COVERED = "|".join(sorted({alert.id for alert in (*GPU, *RUN) if alert.id in DOCS})).replace(".", "[.]")

ALERTS = (
    Alert(
        name="GpumonDown",
        id="monitor.down",
        expr='up{job=~".*gpumon.*"} == 0',
        hold=120,
        severity="critical",
        summary="gpumon on {{ $labels.instance }} cannot be reached",
        description="The machine is down, the daemon is not running, or the network does not let the scrape through.",
        dashboard="cluster",
    ),
    Alert(
        name="GpumonSourceDown",
        id="monitor.source_down",
        expr="gpumon_source_up == 0",
        hold=60,
        severity="critical",
        summary="{{ $labels.instance }} has no GPU readings",
        description="The driver does not answer; `gpumon doctor` on that machine says why.",
        dashboard="node",
    ),
    Alert(
        name="GpumonCollectorFailing",
        id="monitor.collector_failing",
        expr="gpumon_collector_success == 0",
        hold=120,
        severity="warning",
        summary="Collector {{ $labels.collector }} fails on {{ $labels.instance }}",
        description="The other collectors go on; the daemon's log has the error.",
        dashboard="node",
    ),
    Alert(
        name="GpumonSnapshotStale",
        id="monitor.snapshot_stale",
        expr="time() - gpumon_snapshot_timestamp_seconds > "
        f"clamp_min(10 * gpumon_snapshot_interval_seconds, {STALE_SECONDS})",
        hold=60,
        severity="warning",
        summary="gpumon on {{ $labels.instance }} makes no new snapshots",
        description="The figures it serves are {{ $value | humanizeDuration }} old.",
        dashboard="node",
    ),
    Alert(
        name="GpumonMetricsLeftOut",
        id="monitor.left_out",
        expr="gpumon_metrics_left_out > 0",
        hold=600,
        severity="info",
        summary="{{ $value }} {{ $labels.what }} of {{ $labels.instance }} are not in the metrics",
        description="A cap keeps them out: raise --max-runs, --max-ranks or --max-scalars if you need them.",
        dashboard="node",
    ),
    Alert(
        name="GpumonCriticalFinding",
        id="cluster.finding",
        expr=f'label_replace(gpumon_finding_active{{severity="critical", rule!~"{_COVERED}"}},\n'
        '  "finding", "$1", "rule", "(.*)") == 1',
        hold=60,
        severity="warning",
        summary="{{ $labels.finding }} on {{ $labels.instance }}{{ if $labels.run }}, run {{ $labels.run }}{{ end }}",
        description="Critical in the advice engine; the findings table of the run has evidence and remedy.",
        dashboard="cluster",
    ),
)
