"""Which other exporters have the same figure, for docs/metrics.md: dcgm-exporter 4, nvidia_gpu_exporter (what
`nvidia-smi --query-gpu` offers) and nvitop-exporter, according to their sources and documentation in November
2026."""

from __future__ import annotations

from monitor.web.families.dcgm import ROWS

DCGM, DCGM_OPTION, SMI, NVITOP = (
    "dcgm-exporter", "dcgm-exporter (not by default)", "nvidia_gpu_exporter", "nvitop-exporter",
)  # fmt: skip
BOTH = (SMI, NVITOP)

_OTHERS: dict[str, tuple[str, ...]] = {
    "gpu_info": (SMI, NVITOP),
    "gpu_utilization_ratio": BOTH,
    "gpu_memory_utilization_ratio": BOTH,
    "gpu_encoder_utilization_ratio": BOTH,
    "gpu_decoder_utilization_ratio": BOTH,
    "gpu_sm_active_ratio": (DCGM_OPTION,),
    "gpu_sm_occupancy_ratio": (DCGM_OPTION,),
    "gpu_fp64_active_ratio": (DCGM_OPTION,),
    "gpu_fp32_active_ratio": (DCGM_OPTION,),
    "gpu_fp16_active_ratio": (DCGM_OPTION,),
    "gpu_memory_used_bytes": BOTH,
    "gpu_memory_total_bytes": (DCGM_OPTION, *BOTH),
    "gpu_memory_free_bytes": BOTH,
    "gpu_memory_reserved_bytes": (SMI,),
    "gpu_power_watts": BOTH,
    "gpu_power_limit_watts": (DCGM_OPTION, *BOTH),
    "gpu_temperature_celsius": BOTH,
    "gpu_temperature_slowdown_celsius": (DCGM_OPTION,),
    "gpu_temperature_shutdown_celsius": (DCGM_OPTION,),
    "gpu_memory_temperature_celsius": (SMI,),
    "gpu_sm_clock_hertz": BOTH,
    "gpu_sm_clock_max_hertz": (DCGM_OPTION, SMI),
    "gpu_memory_clock_hertz": BOTH,
    "gpu_memory_clock_max_hertz": (DCGM_OPTION, SMI),
    "gpu_graphics_clock_hertz": BOTH,
    "gpu_video_clock_hertz": (DCGM_OPTION, *BOTH),
    "gpu_pstate": (DCGM_OPTION, SMI),
    "gpu_fan_ratio": (DCGM_OPTION, *BOTH),
    "gpu_throttle_active": (DCGM_OPTION, SMI),
    "gpu_throttle_seconds_total": (DCGM_OPTION,),
    "gpu_compute_mode": (DCGM_OPTION, SMI),
    "gpu_fabric_state": (DCGM_OPTION, SMI),
    "gpu_virtualization": (DCGM_OPTION,),
    "gpu_pcie_generation": (DCGM_OPTION, SMI),
    "gpu_pcie_generation_max": (DCGM_OPTION, SMI),
    "gpu_pcie_width_lanes": (DCGM_OPTION, SMI),
    "gpu_pcie_width_max_lanes": (DCGM_OPTION, SMI),
    "gpu_pcie_transmit_bytes_per_second": (NVITOP,),
    "gpu_pcie_receive_bytes_per_second": (NVITOP,),
    "gpu_nvlink_transmit_bytes_per_second": (NVITOP,),
    "gpu_nvlink_receive_bytes_per_second": (NVITOP,),
    "gpu_nvlink_errors_total": (DCGM_OPTION,),
    "gpu_nvlink_link_up": (DCGM_OPTION,),
    "gpu_nvlink_link_errors_total": (DCGM_OPTION,),
    "gpu_ecc_errors": (DCGM_OPTION, SMI),
    "gpu_remapped_rows_pending": (DCGM_OPTION,),
    "gpu_retired_pages": (DCGM, SMI),
    "gpu_retired_pages_pending": (DCGM_OPTION, SMI),
    "gpu_mig_enabled": (SMI,),
    "gpu_mig_memory_used_bytes": (DCGM, NVITOP),
    "gpu_mig_memory_total_bytes": (NVITOP,),
    "gpu_process_memory_bytes": (DCGM_OPTION, NVITOP),
    "gpu_process_sm_ratio": (DCGM_OPTION, NVITOP),
    "gpu_pod": (DCGM,),
    "gpu_slurm_job": (DCGM_OPTION,),
    "host_cpu_utilization_ratio": (NVITOP,),
    "host_load": (NVITOP,),
    "host_memory_total_bytes": (NVITOP,),
    "host_memory_used_bytes": (NVITOP,),
    "host_swap_total_bytes": (NVITOP,),
    "host_swap_used_bytes": (NVITOP,),
    "host_disk_read_bytes_per_second": (NVITOP,),
    "host_disk_write_bytes_per_second": (NVITOP,),
    "host_network_receive_bytes_per_second": (NVITOP,),
    "host_network_transmit_bytes_per_second": (NVITOP,),
}
"""Our family's name without "gpumon_" → who else has it, apart from what `dcgm.ROWS` says."""

OTHERS = {f"gpumon_{name}": exporters for name, exporters in _OTHERS.items()}
_BY_DEFAULT = {row.same_as for row in ROWS}


def who_else(family: str) -> tuple[str, ...]:
    """The exporters, in the order of the page; empty: none."""
    known = ({DCGM} if family in _BY_DEFAULT else set()) | set(OTHERS.get(family, ()))
    if DCGM in known:
        known.discard(DCGM_OPTION)
    return tuple(name for name in (DCGM, DCGM_OPTION, SMI, NVITOP) if name in known)
