"""Alerts about GPUs: idle, throttled, broken, full."""

from __future__ import annotations

from grafana.rules.model import FOUND, POLICY, Alert, duration, ratio, with_job_of_all
from grafana.rules.recording import CARD, IDLE_USE
from monitor.advice.rules import device_hardware_slowdown, device_power_throttle, device_thermal_throttle
from monitor.advice.rules.device_xid import APPLICATION

XID_SECONDS = 900
"""How long an XID event stays an alert."""
CLOCK = "gpumon_gpu_sm_clock_hertz / gpumon_gpu_sm_clock_max_hertz"
WHERE = "GPU {{ $labels.gpu }} of {{ $labels.instance }}"


def _throttled(reasons: tuple[str, ...]) -> str:
    return f'max by (job, instance, uuid, gpu) (gpumon_gpu_throttle_active{{reason=~"{"|".join(reasons)}"}}) == 1'


def _young_xid(codes: str) -> str:
    """The code of the newest XID, as long as it is recent."""
    return f"({codes})\nand {CARD} (time() - gpumon_gpu_xid_last_timestamp_seconds < {XID_SECONDS})"


_APPLICATION = " or ".join(f"gpumon_gpu_xid_last == {code}" for code in APPLICATION)

ALERTS = (
    Alert(
        name="GpumonGpuStarved",
        id="cluster.gpu_starved",
        expr=with_job_of_all(
            f"gpumon:run_gpu_utilization:avg < {POLICY.gpu_busy_low}\n"
            'and on (job, run) (gpumon_run_state{state="running"} == 1)\n'
            f'unless on (job, run) (gpumon:run_phase_share:rate5m{{phase="data"}} > {POLICY.data_share})'
        ),
        hold=600,
        severity="warning",
        summary="GPUs of run {{ $labels.run }} are {{ $value | humanizePercentage }} busy",
        description=f"The target while training is at least {ratio(POLICY.gpu_busy_low)}, and the run is not waiting for data. {FOUND}",
        dashboard="run",
    ),
    Alert(
        name="GpumonGpuIdleHeld",
        id="job.gpu_idle",
        expr=f"(gpumon_gpu_utilization_ratio < {IDLE_USE}) and {CARD} (gpumon_gpu_processes > 0)\n"
        f"unless {CARD} gpumon_gpu_run",
        hold=POLICY.idle_seconds,
        severity="warning",
        summary=f"{WHERE} is held but does nothing",
        description=f"A process has held it without work for {duration(POLICY.idle_seconds)}; nobody else can use it.",
        dashboard="node",
    ),
    Alert(
        name="GpumonThermalThrottle",
        id="device.thermal_throttle",
        expr=_throttled(device_thermal_throttle.REASONS),
        hold=120,
        severity="warning",
        summary=f"{WHERE} is slowed down by heat",
        description="Its clocks are lowered because it is too hot; no change of the training script helps.",
        dashboard="node",
    ),
    Alert(
        name="GpumonPowerThrottle",
        id="device.power_throttle",
        expr=f"({_throttled(device_power_throttle.REASONS)})\n"
        f"and {CARD} ({CLOCK} < {POLICY.throttle_clock_ratio})",
        hold=600,
        severity="warning",
        summary=f"{WHERE} is held back by its power limit",
        description=f"Its SM clock is below {ratio(POLICY.throttle_clock_ratio)} of the maximum.",
        dashboard="node",
    ),
    Alert(
        name="GpumonHardwareSlowdown",
        id="device.hardware_slowdown",
        expr=_throttled(device_hardware_slowdown.REASONS),
        hold=60,
        severity="critical",
        summary=f"{WHERE} is slowed down by its hardware",
        description="Hardware slowdown or power brake: supply, cables, power budget or the board.",
        dashboard="node",
    ),
    Alert(
        name="GpumonXid",
        id="device.xid",
        expr=_young_xid(f"gpumon_gpu_xid_last unless ({_APPLICATION})"),
        hold=0,
        severity="critical",
        summary=f"XID {{{{ $value }}}} on {WHERE}",
        description="The driver reported a fault of the card: drain it, reset it, and replace it if it recurs.",
        dashboard="node",
    ),
    Alert(
        name="GpumonXidApplication",
        id="device.xid",
        expr=_young_xid(_APPLICATION),
        hold=0,
        severity="warning",
        summary=f"XID {{{{ $value }}}} of an application on {WHERE}",
        description="A kernel of a process failed (illegal address or exception); the card itself is fine.",
        dashboard="node",
    ),
    Alert(
        name="GpumonMemoryErrors",
        id="device.memory_errors",
        expr="max by (job, instance, uuid, gpu) (\n"
        '  gpumon_gpu_ecc_errors{type="uncorrected_volatile"} > 0\n'
        "  or gpumon_gpu_remapped_rows_failed == 1\n  or gpumon_gpu_remapped_rows_pending == 1\n"
        "  or gpumon_gpu_retired_pages_pending == 1\n)",
        hold=0,
        severity="critical",
        summary=f"Memory errors on {WHERE}",
        description="Uncorrected errors, or a remapping that failed or waits for a reset: drain and reset the card.",
        dashboard="node",
    ),
    Alert(
        name="GpumonGpuLost",
        id="device.lost",
        expr="gpumon_gpu_up == 0",
        hold=60,
        severity="critical",
        summary=f"{WHERE} does not answer",
        description="It is lost, hung or in error; its readings are absent.",
        dashboard="node",
    ),
    Alert(
        name="GpumonMemoryNearFull",
        id="memory.device_full",
        expr=f"(gpumon_gpu_memory_used_bytes / gpumon_gpu_memory_total_bytes > {POLICY.memory_full})\n"
        f"and {CARD} gpumon_gpu_run",
        hold=120,
        severity="warning",
        summary=f"Memory of {WHERE} is {{{{ $value | humanizePercentage }}}} full",
        description="One longer batch or a neighbour's process ends the run with an out-of-memory error.",
        dashboard="node",
    ),
    Alert(
        name="GpumonPcieDegraded",
        id="transfer.pcie_degraded",
        expr="(gpumon_gpu_pcie_width_lanes < gpumon_gpu_pcie_width_max_lanes)\n"
        f"and {CARD} (gpumon_gpu_utilization_ratio > {IDLE_USE})",
        hold=600,
        severity="warning",
        summary=f"{WHERE} has only {{{{ $value }}}} PCIe lanes",
        description="The link came up narrower than the card supports: check seating, riser or slot.",
        dashboard="node",
    ),
)
