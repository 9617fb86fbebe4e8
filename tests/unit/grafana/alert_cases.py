"""What makes each alert fire, and what almost does. Series are promtool's: `1x40` is 41 times 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

NODE = 'job="gpumon", instance="node1"'
CARD = f'{NODE}, uuid="GPU-1", gpu="0"'
RUN = f'{NODE}, run="r1"'
RANK = f'{RUN}, rank="0"'
SECOND = f'{RUN}, rank="1"'
THIRD = f'{RUN}, rank="2"'


@dataclass(frozen=True, slots=True)
class Case:
    """Series over half an hour (one sample every 30 s), and the alerts that fire after 20 minutes."""

    what: str
    series: Mapping[str, str]
    fires: tuple[str, ...] = ()


def live(state: str = "running") -> dict[str, str]:
    """A run with its identity."""
    return {
        f'gpumon_run_info{{{RUN}, name="resnet", user="ada", slurm_job="4711", pod=""}}': "1x60",
        f'gpumon_run_state{{{RUN}, state="{state}"}}': "1x60",
    }


def card(use: str, **more: str) -> dict[str, str]:
    found = {f"gpumon_gpu_up{{{CARD}}}": "1x60", f"gpumon_gpu_utilization_ratio{{{CARD}}}": use}
    return found | {f"gpumon_gpu_{name}{{{CARD}}}": values for name, values in more.items()}


ON_CARD = {f'gpumon_gpu_run{{{CARD}, run="r1"}}': "1x60"}


def phases(rank: str, **seconds: float) -> dict[str, str]:
    """Counters of a rank that makes one step per second."""
    found = {
        f"gpumon_rank_steps_total{{{rank}}}": "0+30x60",
        f"gpumon_rank_step_mean_seconds{{{rank}}}": "1x60",
    }
    for name, each in seconds.items():
        found[f'gpumon_rank_phase_seconds_total{{{rank}, phase="{name}"}}'] = f"0+{30 * each:g}x60"
    return found


def throttle(reason: str, values: str) -> dict[str, str]:
    return {f'gpumon_gpu_throttle_active{{{CARD}, reason="{reason}"}}': values}


EVEN = {
    **phases(RANK, data=0.1, forward=0.9),
    **phases(SECOND, data=0.1, forward=0.9),
    **phases(THIRD, data=0.1, forward=0.9),
}
UNEVEN = EVEN | phases(THIRD, data=0.5, forward=0.9)
WAITING = (
    EVEN
    | phases(SECOND, data=0.1, forward=0.9, backward=0.8)
    | phases(RANK, data=0.1, forward=0.9, backward=0.1)
)

CASES = (
    Case("a run on a GPU that is 40 % busy", live() | card("0.4x60") | ON_CARD, ("GpumonGpuStarved",)),
    Case("a run on a busy GPU", live() | card("0.9x60") | ON_CARD),
    Case("low use without a run", card("0.4x60")),
    Case("low use for five minutes only", live() | card("0.9x30 0.4x30") | ON_CARD),
    Case("held and idle", card("0x60", processes="1x60"), ("GpumonGpuIdleHeld",)),
    Case("free and idle", card("0x60", processes="0x60")),
    Case("idle within a run that was stopped", live(state="stalled") | card("0x60", processes="1x60") | ON_CARD),
    Case("idle within a run that runs", live() | card("0x60", processes="1x60") | ON_CARD, ("GpumonGpuStarved",)),
    Case("hot", card("0.9x60") | throttle("hw_thermal_slowdown", "1x60"), ("GpumonThermalThrottle",)),
    Case("hot for a moment", card("0.9x60") | throttle("sw_thermal_slowdown", "0x39 1x20")),
    Case(
        "at the power limit, clock low",
        card("0.9x60", sm_clock_hertz="1e9x60", sm_clock_max_hertz="2e9x60") | throttle("sw_power_cap", "1x60"),
        ("GpumonPowerThrottle",),
    ),
    Case(
        "at the power limit, clock nearly full: normal",
        card("0.9x60", sm_clock_hertz="1.9e9x60", sm_clock_max_hertz="2e9x60") | throttle("sw_power_cap", "1x60"),
    ),
    Case("power brake", throttle("hw_power_brake_slowdown", "1x60"), ("GpumonHardwareSlowdown",)),
    Case("idle clocks are no brake", throttle("gpu_idle", "1x60") | throttle("hw_slowdown", "0x60")),
    Case(
        "a card's XID five minutes ago",
        card("0x60", xid_last="79x60", xid_last_timestamp_seconds="900x60"),
        ("GpumonXid",),
    ),
    Case(
        "an application's XID five minutes ago",
        card("0x60", xid_last="31x60", xid_last_timestamp_seconds="900x60"),
        ("GpumonXidApplication",),
    ),
    Case("an XID long ago", card("0x60", xid_last="79x60", xid_last_timestamp_seconds="60x60")),
    Case(
        "uncorrected ECC errors",
        {f'gpumon_gpu_ecc_errors{{{CARD}, type="uncorrected_volatile"}}': "0x20 2x40"},
        ("GpumonMemoryErrors",),
    ),
    Case(
        "corrected ECC errors, nothing pending",
        {f'gpumon_gpu_ecc_errors{{{CARD}, type="corrected_volatile"}}': "5x60"} | card("0x60", remapped_rows_pending="0x60"),
    ),
    Case("a remapping waits for a reset", card("0x60", remapped_rows_pending="1x60", retired_pages_pending="1x60"), ("GpumonMemoryErrors",)),
    Case("lost", {f"gpumon_gpu_up{{{CARD}}}": "1x20 0x40"}, ("GpumonGpuLost",)),
    Case("back again", {f"gpumon_gpu_up{{{CARD}}}": "0x20 1x40"}),
    Case(
        "memory 97 % full in a run",
        live() | ON_CARD | card("0.9x60", memory_used_bytes="97x60", memory_total_bytes="100x60"),
        ("GpumonMemoryNearFull",),
    ),
    Case("memory 90 % full in a run", live() | ON_CARD | card("0.9x60", memory_used_bytes="90x60", memory_total_bytes="100x60")),
    Case("memory full, no run of ours", card("0.9x60", memory_used_bytes="97x60", memory_total_bytes="100x60")),
    Case(
        "half the PCIe lanes while busy",
        card("0.9x60", pcie_width_lanes="8x60", pcie_width_max_lanes="16x60"),
        ("GpumonPcieDegraded",),
    ),
    Case("half the PCIe lanes while idle", card("0x60", pcie_width_lanes="8x60", pcie_width_max_lanes="16x60")),
    Case(
        "waits for data",
        live() | card("0.4x60") | ON_CARD | phases(RANK, data=0.5, forward=0.5),
        ("GpumonRunWaitsForData",),
    ),
    Case("some waiting, GPU busy all the same", live() | card("0.9x60") | ON_CARD | phases(RANK, data=0.3, forward=0.7)),
    Case("throughput fell to a half", live() | {f"gpumon_run_trend_ratio{{{RUN}}}": "1x10 0.5x50"}, ("GpumonThroughputDecay",)),
    Case("throughput fell a little", live() | {f"gpumon_run_trend_ratio{{{RUN}}}": "0.9x60"}),
    Case("decayed, and over", live("ended") | {f"gpumon_run_trend_ratio{{{RUN}}}": "0.5x60"}),
    Case("one rank works longer", live() | UNEVEN, ("GpumonStraggler",)),
    Case("even ranks", live() | EVEN),
    Case("ranks that wait in backward for others", live() | WAITING),
    Case(
        "the slower of two ranks",
        live() | phases(RANK, forward=0.5) | phases(SECOND, forward=0.9),
        ("GpumonStraggler",),
    ),
    Case(
        "no step for ten minutes",
        live() | {f"gpumon_rank_last_step_timestamp_seconds{{{RANK}}}": "0+30x20 600x40",
                  f'gpumon_run_step_percentile_seconds{{{RUN}, percentile="95"}}': "0.5x60"},
        ("GpumonRunStalled",),
    ),
    Case(
        "a step takes two minutes and always did",
        live() | {f"gpumon_rank_last_step_timestamp_seconds{{{RANK}}}": "1080x60",
                  f'gpumon_run_step_percentile_seconds{{{RUN}, percentile="95"}}': "120x60"},
    ),
    Case("silent because it has ended", live("ended") | {f"gpumon_rank_last_step_timestamp_seconds{{{RANK}}}": "60x60"}),
    Case("no first step after 20 minutes", live() | {f"gpumon_run_started_timestamp_seconds{{{RUN}}}": "0x60"}, ("GpumonLongSetup",)),
    Case(
        "first step was made",
        live() | {f"gpumon_run_started_timestamp_seconds{{{RUN}}}": "0x60", f"gpumon_run_first_step_timestamp_seconds{{{RUN}}}": "700x60"},
    ),
    Case("killed", live("killed"), ("GpumonRunFailed",)),
    Case("ended well", live("ended")),
    Case(
        "swapping while training",
        live() | {f"gpumon_host_swap_in_bytes_per_second{{{NODE}}}": "4e6x60", f"gpumon_host_swap_out_bytes_per_second{{{NODE}}}": "4e6x60"},
        ("GpumonSwapping",),
    ),
    Case(
        "swapping, nobody trains",
        {f"gpumon_host_swap_in_bytes_per_second{{{NODE}}}": "4e6x60", f"gpumon_host_swap_out_bytes_per_second{{{NODE}}}": "4e6x60"},
    ),
    Case(
        "a third of the records lost",
        live() | {f"gpumon_rank_lost_records_total{{{RANK}}}": "0+10x60", f"gpumon_rank_steps_total{{{RANK}}}": "0+30x60"},
        ("GpumonDataLost",),
    ),
    Case(
        "a few records lost",
        live() | {f"gpumon_rank_lost_records_total{{{RANK}}}": "0+1x60", f"gpumon_rank_steps_total{{{RANK}}}": "0+30x60"},
    ),
    Case("daemon gone", {f"up{{{NODE}}}": "1x20 0x40"}, ("GpumonDown",)),
    Case("another exporter gone", {'up{job="node", instance="node1"}': "0x60"}),
    Case("driver gone", {f'gpumon_source_up{{{NODE}, source="nvml"}}': "0x60"}, ("GpumonSourceDown",)),
    Case("driver there", {f'gpumon_source_up{{{NODE}, source="nvml"}}': "1x60"}),
    Case("a collector fails", {f'gpumon_collector_success{{{NODE}, collector="host"}}': "1x10 0x50"}, ("GpumonCollectorFailing",)),
    Case("a collector failed once", {f'gpumon_collector_success{{{NODE}, collector="host"}}': "1x38 0x1 1x20"}),
    Case(
        "snapshots stopped",
        {f"gpumon_snapshot_timestamp_seconds{{{NODE}}}": "0+30x20 600x40", f"gpumon_snapshot_interval_seconds{{{NODE}}}": "1x60"},
        ("GpumonSnapshotStale",),
    ),
    Case(
        "snapshots every minute",
        {f"gpumon_snapshot_timestamp_seconds{{{NODE}}}": "0+30x60", f"gpumon_snapshot_interval_seconds{{{NODE}}}": "60x60"},
    ),
    Case("caps keep ranks out", {f'gpumon_metrics_left_out{{{NODE}, what="metric_ranks"}}': "12x60"}, ("GpumonMetricsLeftOut",)),
    Case("caps keep nothing out", {f'gpumon_metrics_left_out{{{NODE}, what="metric_ranks"}}': "0x60"}),
    Case(
        "a critical finding without an alert of its own",
        {f'gpumon_finding_active{{{RUN}, rule="memory.leak", uuid="", severity="critical"}}': "1x60"},
        ("GpumonCriticalFinding",),
    ),
    Case(
        "a critical finding that has an alert, and a hint",
        {f'gpumon_finding_active{{{RUN}, rule="trend.hung", uuid="", severity="critical"}}': "1x60",
         f'gpumon_finding_active{{{RUN}, rule="memory.leak", uuid="", severity="hint"}}': "1x60"},
    ),
)  # fmt: skip
