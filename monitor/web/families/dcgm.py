"""dcgm-exporter's names, labels and units for its default counters (``--compat dcgm``), so that dashboards and
alerts written for it go on working. Only with that option; gpumon's own series are there as well.

Every row says which of our families has the same figure. What a card does not tell is absent here too, where
dcgm-exporter may write 0 or a very large number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from monitor.model.gpu import Gpu
from monitor.web.families.base import Family, Kind, Labels, Sample, Scene

LABELS = ("gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION")
HOLDER_LABELS = ("container", "namespace", "pod")
MHZ, MIB, KIB, MILLI, PERCENT = 1e6, 1 << 20, 1 << 10, 1e-3, 0.01
"""Units of dcgm-exporter in ours."""


@dataclass(frozen=True, slots=True)
class Row:
    """One counter of dcgm-exporter: `value` is in our unit, `unit` is theirs."""

    name: str
    kind: Kind
    help: str
    same_as: str
    value: Callable[[Gpu], float | None]
    unit: float = 1.0

    def family(self) -> Family:
        return Family(
            self.name,
            self.kind,
            self.help,
            (*LABELS, *HOLDER_LABELS),
            self._read,
            "--compat dcgm",
            "1 per GPU",
        )

    def _read(self, scene: Scene) -> Iterable[Sample]:
        return [(labels_of(gpu, scene), self._converted(gpu)) for _, gpu in scene.gpus]

    def _converted(self, gpu: Gpu) -> float | None:
        value = self.value(gpu)
        return None if value is None else round(value / self.unit, 6)


def labels_of(gpu: Gpu, scene: Scene) -> Labels:
    """With the container the GPU was given to, when that is one; dcgm-exporter leaves the labels out otherwise,
    which is the same to Prometheus as leaving them empty."""
    pods = [one for one in gpu.holders if one.pod is not None]
    holder = pods[0] if len(pods) == 1 else None
    own = (
        str(gpu.index),
        gpu.uuid,
        gpu.pci_bus_id or "",
        "" if gpu.minor is None else f"nvidia{gpu.minor}",
        gpu.name or "",
        scene.snapshot.host.hostname,
        scene.snapshot.source.driver_version or "",
    )
    who = (holder.container, holder.namespace, holder.pod) if holder else (None, None, None)
    return (*own, *(text or "" for text in who))


ROWS = (
    Row("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock (MHz).", "gpumon_gpu_sm_clock_hertz", lambda g: g.sm_clock_hertz, MHZ),
    Row("DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock (MHz).", "gpumon_gpu_memory_clock_hertz", lambda g: g.memory_clock_hertz, MHZ),
    Row("DCGM_FI_DEV_MEMORY_TEMP", "gauge", "Memory temperature (C).", "gpumon_gpu_memory_temperature_celsius", lambda g: g.memory_temperature_celsius),
    Row("DCGM_FI_DEV_GPU_TEMP", "gauge", "Core temperature (C).", "gpumon_gpu_temperature_celsius", lambda g: g.temperature_celsius),
    Row("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power drawn (W).", "gpumon_gpu_power_watts", lambda g: g.power_watts),
    Row("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "Energy used since the driver was loaded (mJ).", "gpumon_gpu_energy_joules_total", lambda g: g.energy_joules, MILLI),
    Row("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "PCIe packets sent again.", "gpumon_gpu_pcie_replays_total", lambda g: g.pcie.replays),
    Row("DCGM_FI_DEV_GPU_UTIL", "gauge", "Time in which a kernel ran (%).", "gpumon_gpu_utilization_ratio", lambda g: g.utilization_ratio, PERCENT),
    Row("DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "Time in which device memory was used (%).", "gpumon_gpu_memory_utilization_ratio", lambda g: g.memory_utilization_ratio, PERCENT),
    Row("DCGM_FI_DEV_ENC_UTIL", "gauge", "Video encoder (%).", "gpumon_gpu_encoder_utilization_ratio", lambda g: g.encoder_utilization_ratio, PERCENT),
    Row("DCGM_FI_DEV_DEC_UTIL", "gauge", "Video decoder (%).", "gpumon_gpu_decoder_utilization_ratio", lambda g: g.decoder_utilization_ratio, PERCENT),
    Row("DCGM_FI_DEV_XID_ERRORS", "gauge", "Code of the newest XID event.", "gpumon_gpu_xid_last", lambda g: g.errors.xid_last),
    Row("DCGM_FI_DEV_FB_FREE", "gauge", "Device memory free (MiB).", "gpumon_gpu_memory_free_bytes", lambda g: g.memory_free_bytes, MIB),
    Row("DCGM_FI_DEV_FB_USED", "gauge", "Device memory in use (MiB).", "gpumon_gpu_memory_used_bytes", lambda g: g.memory_used_bytes, MIB),
    Row("DCGM_FI_DEV_FB_RESERVED", "gauge", "Device memory the driver keeps (MiB).", "gpumon_gpu_memory_reserved_bytes", lambda g: g.memory_reserved_bytes, MIB),
    Row("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "counter", "Sent and received over all NVLink links (KiB).", "gpumon_gpu_nvlink_transmit_bytes_total", lambda g: g.nvlink.total_bytes, KIB),
    Row("DCGM_FI_DEV_VGPU_LICENSE_STATUS", "gauge", "1: the virtual GPU is licensed.", "gpumon_gpu_vgpu_licensed", lambda g: g.vgpu_licensed),
    Row("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", "Rows remapped for uncorrectable errors.", "gpumon_gpu_remapped_rows", lambda g: g.errors.remapped_rows_uncorrected),
    Row("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter", "Rows remapped for correctable errors.", "gpumon_gpu_remapped_rows", lambda g: g.errors.remapped_rows_corrected),
    Row("DCGM_FI_DEV_RETIRED_SBE", "counter", "Pages retired for single-bit errors.", "gpumon_gpu_retired_pages", lambda g: g.errors.retired_pages_single_bit),
    Row("DCGM_FI_DEV_RETIRED_DBE", "counter", "Pages retired for double-bit errors.", "gpumon_gpu_retired_pages", lambda g: g.errors.retired_pages_double_bit),
    Row("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "1: a remapping failed.", "gpumon_gpu_remapped_rows_failed", lambda g: g.errors.remapped_rows_failed),
    Row("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Any engine for compute or graphics.", "gpumon_gpu_graphics_active_ratio", lambda g: g.activity.graphics_active_ratio),
    Row("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "Tensor cores.", "gpumon_gpu_tensor_active_ratio", lambda g: g.activity.tensor_active_ratio),
    Row("DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "Device memory.", "gpumon_gpu_dram_active_ratio", lambda g: g.activity.dram_active_ratio),
    Row("DCGM_FI_PROF_PCIE_TX_BYTES", "gauge", "Sent over PCIe (B/s).", "gpumon_gpu_pcie_transmit_bytes_per_second", lambda g: g.pcie.transmit_bytes_per_second),
    Row("DCGM_FI_PROF_PCIE_RX_BYTES", "gauge", "Received over PCIe (B/s).", "gpumon_gpu_pcie_receive_bytes_per_second", lambda g: g.pcie.receive_bytes_per_second),
)  # fmt: skip
"""What dcgm-exporter 4 serves by default, with and without profiling."""

FAMILIES = tuple(row.family() for row in ROWS)
