"""A card's condition beyond its readings: what it may be used for, whether it needs help, its fabric and
virtual GPUs."""

from __future__ import annotations

import ctypes
from typing import Any

import pynvml

from monitor.gpu.calls import Asked, Reading, Scalar, Values, no_function

COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
VIRTUALIZATIONS = {0: "none", 1: "passthrough", 2: "vgpu", 3: "host_vgpu", 4: "host_vsga"}
RECOVERY_ACTIONS = {
    0: "none",
    1: "gpu_reset",
    2: "node_reboot",
    3: "drain_p2p",
    4: "drain_and_reset",
    5: "recover_imex_domain",
    6: "bus_reset",
    7: "system_reboot",
}
FABRIC_STATES = {1: "not_started", 2: "in_progress", 3: "completed"}
FABRIC_HEALTH = {1: "healthy", 2: "unhealthy", 3: "limited_capacity"}
"""NVML's numbers; for the last two, 0 means "not supported"."""


class Fabric(Asked):
    """A card's registration with the NVLink fabric. State and health are bytes in NVML, but words in
    pynvml."""

    def __init__(self, handle: Any, target: Values, version: int) -> None:
        keys = ("fabric_state", "fabric_health")
        super().__init__("nvmlDeviceGetGpuFabricInfoV", target, keys)
        structure: Any = getattr(pynvml, f"c_nvmlGpuFabricInfo_v{version}_t", None)
        if structure is None:
            self.function = no_function
            return
        self._out: Any = structure()
        self._out.version = getattr(pynvml, f"nvmlGpuFabricInfo_v{version}")
        self.arguments = (handle, ctypes.byref(self._out))

    def store(self) -> None:
        self.target["fabric_state"] = FABRIC_STATES.get(self._out.state & 0xFF)
        self.target["fabric_health"] = FABRIC_HEALTH.get(getattr(self._out, "healthSummary", 0) & 0xFF)


class License(Asked):
    """Whether a virtual GPU is licensed; None where that does not apply."""

    def __init__(self, handle: Any, target: Values) -> None:
        super().__init__("nvmlDeviceGetGridLicensableFeatures_v4", target, ("vgpu_licensed",))
        structure: Any = getattr(pynvml, "c_nvmlGridLicensableFeatures_v4_t", None)
        if structure is None:
            self.function = no_function
            return
        self._out: Any = structure()
        self.arguments = (handle, ctypes.byref(self._out))

    def store(self) -> None:
        count = self._out.licensableFeaturesCount if self._out.isGridLicenseSupported else 0
        enabled = [one for one in self._out.gridLicensableFeatures[:count] if one.featureEnabled]
        self.target["vgpu_licensed"] = any(one.featureState for one in enabled) if enabled else None


class Vgpus(Asked):
    """How many virtual GPUs run on this one. Asked without room for their ids: "too small" carries the
    count."""

    def __init__(self, handle: Any, target: Values) -> None:
        super().__init__("nvmlDeviceGetActiveVgpus", target, ("vgpus",))
        self._count = ctypes.c_uint()
        self._function = self.function
        self.function = self._ask
        self.arguments = (handle,)

    def _ask(self, handle: Any) -> int:
        self._count.value = 0
        code = self._function(handle, ctypes.byref(self._count), None)
        return 0 if code == pynvml.NVML_ERROR_INSUFFICIENT_SIZE else code

    def store(self) -> None:
        self.target["vgpus"] = self._count.value


def compute_mode(handle: Any, gpu: Values) -> Reading:
    return Scalar("nvmlDeviceGetComputeMode", handle, gpu, "compute_mode", COMPUTE_MODES.get)


def virtualization(handle: Any, gpu: Values) -> Reading:
    return Scalar("nvmlDeviceGetVirtualizationMode", handle, gpu, "virtualization", VIRTUALIZATIONS.get)
