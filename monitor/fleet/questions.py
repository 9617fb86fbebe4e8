"""What is asked about runs: all that their daemons export, in a dozen queries however many there are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from monitor.fleet.api import Api, Sample

WINDOW_SECONDS = 300
"""Rates are over five minutes, as in the recording rules."""
MOST_POINTS = 500
"""Points a time range is cut into for GPU-hours."""
KNOWN = (
    "gpumon_run_info",
    "gpumon_run_state",
    "gpumon_run_started_timestamp_seconds",
    "gpumon_run_ended_timestamp_seconds",
    "gpumon_run_world_size",
    "gpumon_rank_info",
    "gpumon_rank_steps_total",
    "gpumon_rank_last_step_timestamp_seconds",
)
"""Asked of the whole time range: a machine that is gone was there."""
NOW = (
    "gpumon_run_info",
    "gpumon_run_first_step_timestamp_seconds",
    "gpumon_run_batch_size",
    "gpumon_run_step_percentile_seconds",
    "gpumon_run_trend_ratio",
    "gpumon_rank_up",
    "gpumon_rank_epoch",
    "gpumon_rank_loss",
    "gpumon_rank_samples_total",
    "gpumon_rank_lost_records_total",
    "gpumon_rank_phase_seconds_total",
    "gpumon_rank_step_mean_seconds",
    "gpumon_rank_live_phase_seconds",
    "gpumon_rank_device_busy_ratio",
    "gpumon_rank_starved_ratio",
    "gpumon_rank_device_phase_seconds",
    "gpumon_rank_exchange_seconds",
    "gpumon_finding_active",
    "gpumon_finding_predicted_speedup_ratio",
    "gpumon_finding_since_timestamp_seconds",
    "gpumon_gpu_run",
)
"""What holds now: absent when the machine does not report it."""
INCREASES = {
    "phases": "gpumon_rank_phase_seconds_total",
    "steps": "gpumon_rank_steps_total",
    "samples": "gpumon_rank_samples_total",
    "tokens": "gpumon_rank_tokens_total",
}
CARD = (
    "gpumon_gpu_utilization_ratio",
    "gpumon_gpu_memory_used_bytes",
    "gpumon_gpu_memory_total_bytes",
    "gpumon_gpu_power_watts",
    "gpumon_gpu_power_limit_watts",
    "gpumon_gpu_temperature_celsius",
    "gpumon_gpu_sm_clock_hertz",
    "gpumon_gpu_sm_clock_max_hertz",
    "gpumon_gpu_info",
)
ON_CARD = "on (job, instance, uuid)"


@dataclass(frozen=True, slots=True)
class Answers:
    """All that was told about runs at one moment."""

    at: float
    known: list[Sample] = field(default_factory=list)
    now: list[Sample] = field(default_factory=list)
    increases: dict[str, list[Sample]] = field(default_factory=dict)
    """Over the last `WINDOW_SECONDS`."""
    use: list[Sample] = field(default_factory=list)
    """Mean use of the runs' GPUs over the same time."""
    cards: list[Sample] = field(default_factory=list)
    down: list[Sample] = field(default_factory=list)
    """Scrape targets that do not answer."""
    held_gpu_hours: list[Sample] = field(default_factory=list)
    idle_gpu_hours: list[Sample] = field(default_factory=list)


def one_run(run: str) -> str:
    """A selector for one run."""
    escaped = run.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'run="{escaped}"'


ALL_RUNS = 'run!=""'


def named(names: Iterable[str], which: str) -> str:
    return f'{{__name__=~"{"|".join(names)}", {which}}}'


def known(api: Api, which: str, at: float, since: float) -> list[Sample]:
    """Who, where, since when, how far: of every machine that was seen in the time range."""
    return api.ask(f"last_over_time({named(KNOWN, which)}[{round(since)}s])", at)


def everything(api: Api, which: str, at: float, since: float, *, cards: bool = False) -> Answers:
    """All questions about the runs `which` selects. `cards`: also what their GPUs do."""
    window = f"[{WINDOW_SECONDS}s]"
    use = f"avg_over_time(gpumon_gpu_utilization_ratio{window}) and {ON_CARD} gpumon_gpu_run{{{which}}}"
    card = f'{{__name__=~"{"|".join(CARD)}"}} and {ON_CARD} gpumon_gpu_run{{{which}}}'
    increases = {
        name: api.ask(f"increase({series}{{{which}}}{window})", at) for name, series in INCREASES.items()
    }
    return Answers(
        at,
        known(api, which, at, since),
        api.ask(named(NOW, which), at),
        increases,
        api.ask(use, at),
        api.ask(card, at) if cards else [],
        api.ask("up == 0", at),
        *(api.ask(expression, at) for expression in gpu_hours(which, since)),
    )


def gpu_hours(which: str, since: float) -> tuple[str, str]:
    """GPU-hours that runs had, and those without a kernel; a GPU two runs share counts half for each."""
    step = max(1, round(since / MOST_POINTS))
    shared = (
        f"gpumon_gpu_run{{{which}}} / {ON_CARD} group_left () count by (job, instance, uuid) (gpumon_gpu_run)"
    )
    unused = "1 - max by (job, instance, uuid) (gpumon_gpu_utilization_ratio)"
    idle = f"({shared}) * {ON_CARD} group_left () ({unused})"
    return _hours(shared, since, step), _hours(idle, since, step)


def _hours(gpus: str, since: float, step: int) -> str:
    return f"sum by (cluster, job, run) (sum_over_time(({gpus})[{round(since)}s:{step}s])) * {step} / 3600"
