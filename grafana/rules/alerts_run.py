"""Alerts about training runs: slow, decaying, uneven, silent, or impossible to judge."""

from __future__ import annotations

from grafana.rules.model import FOUND, POLICY, Alert, duration, ratio, with_job, with_job_of_all
from grafana.rules.recording import COMMON

LIVE = 'on (job, instance, run) (gpumon_run_state{state=~"running|stalled"} == 1)'
STRAGGLER_COST = 0.05
"""Share of the step a straggler must cost, as in the advice rule."""
P95 = 'max by (job, instance, run) (gpumon_run_step_percentile_seconds{percentile="95"})'
SILENT = "time() - max by (job, instance, run) (gpumon_rank_last_step_timestamp_seconds)"
LOST = (
    "sum by (job, instance, run) (increase(gpumon_rank_lost_records_total[10m]))\n"
    "/ (sum by (job, instance, run) (increase(gpumon_rank_steps_total[10m])) > 0)"
)

ALERTS = (
    Alert(
        name="GpumonRunWaitsForData",
        id="input.bound",
        expr=with_job_of_all(
            f'gpumon:run_phase_share:rate5m{{phase="data"}} > {POLICY.data_share}\n'
            f"and on (job, run) (gpumon:run_gpu_utilization:avg < {POLICY.gpu_busy_low})"
        ),
        hold=600,
        severity="warning",
        summary="Run {{ $labels.run }} waits for data {{ $value | humanizePercentage }} of the time",
        description=f"Its GPUs are below {ratio(POLICY.gpu_busy_low)} busy meanwhile. {FOUND}",
        dashboard="run",
    ),
    Alert(
        name="GpumonThroughputDecay",
        id="trend.decay",
        expr=with_job(f"(gpumon_run_trend_ratio < {POLICY.trend_ratio}) and {LIVE}"),
        hold=300,
        severity="warning",
        summary="Run {{ $labels.run }} has slowed to {{ $value | humanizePercentage }} of its best speed",
        description="Something grows with the steps: a list, a graph kept alive, memory, heat.",
        dashboard="run",
    ),
    Alert(
        name="GpumonStraggler",
        id="distributed.straggler",
        expr=with_job(
            f"(gpumon:rank_skew:ratio > {POLICY.straggler_ratio})\n"
            "and on (job, run) (\n"
            f"  max by (job, run) (gpumon:rank_own_work_seconds) - ({COMMON.strip()})\n"
            f"  > {STRAGGLER_COST} * max by (job, run) (gpumon_rank_step_mean_seconds)\n)"
        ),
        hold=300,
        severity="warning",
        summary="Rank {{ $labels.rank }} of run {{ $labels.run }} holds the others up",
        description="Its own work takes {{ $value | humanize }} times that of the usual rank, on {{ $labels.instance }}.",
        dashboard="run",
    ),
    Alert(
        name="GpumonRunStalled",
        id="trend.hung",
        expr=with_job(f"(({SILENT}) > clamp_min(10 * {P95}, {POLICY.hung_seconds:g})) and {LIVE}"),
        hold=30,
        severity="critical",
        summary="Run {{ $labels.run }} has made no step for {{ $value | humanizeDuration }}",
        description="Its process lives and its GPUs stay allocated; the run dashboard shows the phase it is in.",
        dashboard="run",
    ),
    Alert(
        name="GpumonLongSetup",
        id="job.long_setup",
        expr=with_job(
            f"(time() - gpumon_run_started_timestamp_seconds > {5 * POLICY.setup_seconds:g})\n"
            f"and {LIVE}\nunless on (job, instance, run) gpumon_run_first_step_timestamp_seconds"
        ),
        hold=0,
        severity="warning",
        summary="Run {{ $labels.run }} has been setting up for {{ $value | humanizeDuration }}",
        description=f"Set-up longer than {duration(5 * POLICY.setup_seconds)} keeps its GPUs from everybody.",
        dashboard="run",
    ),
    Alert(
        name="GpumonRunFailed",
        id="trend.ended_abnormally",
        expr=with_job('gpumon_run_state{state=~"failed|killed"} == 1'),
        hold=0,
        severity="info",
        summary='Run {{ $labels.run }} {{ if eq $labels.state "failed" }}failed{{ else }}was killed{{ end }}',
        description="It did not end normally; the run dashboard shows its last phase and memory.",
        dashboard="run",
    ),
    Alert(
        name="GpumonSwapping",
        id="memory.swapping",
        expr="(gpumon_host_swap_in_bytes_per_second + gpumon_host_swap_out_bytes_per_second"
        f" > {POLICY.swap_bytes_per_second:g})\n"
        'and on (job, instance) (gpumon_run_state{state="running"} == 1)',
        hold=120,
        severity="warning",
        summary="{{ $labels.instance }} is swapping while training",
        description="{{ $value | humanize1024 }}B/s in and out of swap.",
        dashboard="node",
    ),
    Alert(
        name="GpumonDataLost",
        id="job.data_lost",
        expr=with_job(f"({LOST}) > {POLICY.lost_share}"),
        hold=120,
        severity="warning",
        summary="{{ $value | humanizePercentage }} of the step records of run {{ $labels.run }} are lost",
        description="The daemon reads slower than the run writes; there is no verdict on step time.",
        dashboard="run",
    ),
)
