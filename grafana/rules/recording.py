"""Figures precomputed for dashboards of many machines: what each GPU does, what is wasted, and by whom.

A GPU has exactly one condition, and a GPU whose card does not report its use is `unknown`, not idle.
Everything is joined by (job, instance, …), so the same uuid or run on two machines stays separate.
"""

from __future__ import annotations

from grafana.rules.model import POLICY, Recording, ratio
from monitor.advice.evidence.ranks import WAITS

IDLE_USE = POLICY.gpu_unused
"""Use below this counts as none, as for `job.gpu_idle`."""
CARD = "on (job, instance, uuid)"
WINDOW = "5m"

USE = "gpumon:gpu_utilization:avg1m"
TRAINS = "gpumon:gpu_trains:max"
HELD = "(gpumon_gpu_processes > 0)"

CONDITIONS = {
    "active": f"({USE} >= bool {POLICY.gpu_busy_low}) == 1 and {CARD} {TRAINS}\n"
    f"or (({USE} >= bool {IDLE_USE}) == 1 unless {CARD} {TRAINS})",
    "starved": f"({USE} < bool {POLICY.gpu_busy_low}) == 1 and {CARD} {TRAINS}",
    "held": f"(({USE} < bool {IDLE_USE}) == 1 and {CARD} {HELD}) unless {CARD} {TRAINS}",
    "free": f"(({USE} < bool {IDLE_USE}) == 1 unless {CARD} {HELD}) unless {CARD} {TRAINS}",
    "unknown": f"(gpumon_gpu_up == 1) unless {CARD} {USE}",
    "lost": "(gpumon_gpu_up == bool 0) == 1",
}
CONDITION_TEXT = {
    "active": f"a run keeps it at least {ratio(POLICY.gpu_busy_low)} busy, or somebody unwatched uses it",
    "starved": f"a run is on it and it is below {ratio(POLICY.gpu_busy_low)} busy",
    "held": "a process holds it, no run is on it and it does nothing",
    "free": "nobody holds it",
    "unknown": "it answers but does not report its use (MIG)",
    "lost": "it does not answer",
}


def _conditions() -> list[Recording]:
    return [
        Recording("gpumon:gpu_condition", expr, f"1: {CONDITION_TEXT[name]}.", {"condition": name})
        for name, expr in CONDITIONS.items()
    ]


SHARED = (
    "gpumon_gpu_run / on (job, instance, uuid) group_left () count by (job, instance, uuid) (gpumon_gpu_run)"
)
"""A GPU shared by two runs counts half for each."""

GPU = (
    Recording(
        USE,
        f"avg_over_time(gpumon_gpu_utilization_ratio[1m]) and {CARD} (gpumon_gpu_up == 1)",
        "GPU use of cards that answer, smoothed so that conditions do not flap.",
    ),
    Recording(
        TRAINS, "max by (job, instance, uuid, gpu) (gpumon_gpu_run)", "1: at least one run is on the GPU."
    ),
    *_conditions(),
    Recording(
        "gpumon:gpu_wasted:ratio",
        f"(1 - {USE}) and {CARD} ({TRAINS} or {HELD})",
        "Share of a GPU that somebody has and does not use.",
    ),
    Recording("gpumon:gpus:count", "count by (job, instance) (gpumon_gpu_up)", "GPUs of a machine."),
    Recording("gpumon:gpu_utilization:avg", f"avg by (job, instance) ({USE})", "Mean GPU use of a machine."),
    Recording(
        "gpumon:wasted_gpus:sum",
        "sum by (job, instance) (gpumon:gpu_wasted:ratio)",
        "GPUs' worth of allocated but unused time, per machine.",
    ),
    Recording(
        "gpumon:allocated_gpus:count",
        "count by (job, instance) (gpumon:gpu_wasted:ratio)",
        "GPUs somebody has, per machine.",
    ),
)

_WAITS = "|".join(WAITS)
_STEPS = f"rate(gpumon_rank_steps_total[{WINDOW}])"
_OWN = f'rate(gpumon_rank_phase_seconds_total{{phase!~"{_WAITS}"}}[{WINDOW}])'
_WAITING = f'rate(gpumon_rank_phase_seconds_total{{phase=~"{_WAITS}"}}[{WINDOW}])'
_RANK = "on (job, instance, run, rank)"
_ALL_TIMED = (
    "count by (job, run) (gpumon_rank_exchange_seconds > 0) == count by (job, run) (gpumon_rank_up == 1)"
)
BY_DEVICE = f"""
(
  sum by (job, instance, run, rank) (gpumon_rank_device_phase_seconds) - {_RANK} gpumon_rank_exchange_seconds
  and on (job, run) ({_ALL_TIMED})
)"""
"""On GPUs, where every rank's device tells how long it worked and how long the exchange ran alone."""
OWN_WORK = f"""{BY_DEVICE}
or (
  sum by (job, instance, run, rank) ({_OWN}) / {_RANK} {_STEPS}
  + on (job, run) group_left () (
    sum by (job, run) (min by (job, run, phase) ({_WAITING} / {_RANK} group_left () {_STEPS}))
    or 0 * sum by (job, run) ({_STEPS})
  )
)"""
COMMON = """
(quantile by (job, run) (0.5, gpumon:rank_own_work_seconds) and count by (job, run) (gpumon:rank_own_work_seconds) > 2)
or min by (job, run) (gpumon:rank_own_work_seconds)"""

RUNS = (
    Recording("gpumon:run_gpus:sum", f"sum by (job, run) ({SHARED})", "GPUs a run has."),
    Recording(
        "gpumon:run_wasted_gpus:sum",
        f"sum by (job, run) (({SHARED}) * {CARD} group_left () gpumon:gpu_wasted:ratio)",
        "GPUs' worth of time a run has and does not use.",
    ),
    Recording(
        "gpumon:run_gpu_utilization:avg",
        f"avg by (job, run) (gpumon_gpu_run * {CARD} group_left () {USE})",
        "Mean use of a run's GPUs.",
    ),
    Recording(
        "gpumon:run_best_finding:speedup",
        "topk by (job, run) (1, max by (job, run, rule) "
        '(gpumon_finding_predicted_speedup_ratio{estimate="likely", run!=""}))',
        "The run's most promising finding, and its likely speed-up.",
    ),
    Recording(
        "gpumon:run_recoverable_gpus:sum",
        "(1 - 1 / gpumon:run_best_finding:speedup) * on (job, run) group_left () gpumon:run_gpus:sum",
        "GPUs' worth of time a run would free if its best finding were acted on.",
    ),
    Recording(
        "gpumon:run_phase_share:rate5m",
        f"sum by (job, run, phase) (rate(gpumon_rank_phase_seconds_total[{WINDOW}]))\n"
        f"/ on (job, run) group_left () sum by (job, run) (rate(gpumon_rank_phase_seconds_total[{WINDOW}]))",
        "Share of a run's step time by phase.",
    ),
    Recording(
        "gpumon:rank_own_work_seconds",
        OWN_WORK,
        "A rank's own work in seconds per step, without waiting in collectives.",
    ),
    Recording(
        "gpumon:rank_skew:ratio",
        f"gpumon:rank_own_work_seconds / on (job, run) group_left () ({COMMON.strip()})",
        "A rank's own work over that of the usual rank of its run: 1 is no skew.",
    ),
)
