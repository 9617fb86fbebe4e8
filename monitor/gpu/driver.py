"""The driver as a whole: starting and stopping NVML, its versions, and why it fails, in plain words."""

from __future__ import annotations

import _ctypes
import ctypes
from pathlib import Path

import pynvml
from msgspec import Struct

from monitor.gpu.awaited import NOT_FOUND
from monitor.gpu.calls import find_function, require

PROC_GPUS = Path("/proc/driver/nvidia/gpus")

REASONS = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: NOT_FOUND,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "The NVIDIA driver is not loaded: run nvidia-smi as root or "
    "modprobe nvidia to load it.",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "The NVIDIA driver and its library are of different versions: "
    "finish the update by reloading the driver (or reboot).",
    pynvml.NVML_ERROR_NO_PERMISSION: "No permission to talk to the NVIDIA driver: gpumon's user needs "
    "access to /dev/nvidiactl and /dev/nvidia0.",
    pynvml.NVML_ERROR_UNINITIALIZED: "The NVIDIA driver was reloaded: NVML is being started again.",
}


class Versions(Struct, frozen=True):
    driver: str | None = None
    cuda: str | None = None
    nvml: str | None = None


class Started(Struct, frozen=True):
    """What a successful start found."""

    versions: Versions
    count: int


def explain(code: int) -> str:
    """One sentence and a remedy for an error that stops all of NVML."""
    known = REASONS.get(code)
    return known or f"NVML does not start: {pynvml.NVMLError(code)}; nvidia-smi should say the same."


def start(stop_first: bool) -> Started:
    """Initialise NVML; raises `NVMLError`. With `stop_first` (no call is in flight, no handle will be used
    again) the old initialisation is ended first, and an updated library is reloaded."""
    if stop_first:
        stop()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        if not stop_first or error.value != pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
            raise
        unload_library()
        pynvml.nvmlInit()
    return Started(_versions(), count_gpus())


def unload_library() -> None:
    """After a driver update the old library is still in memory and no longer matches; pynvml would keep it
    forever. After this, pynvml loads the library again, now the new one."""
    library, pynvml.nvmlLib = pynvml.nvmlLib, None
    getattr(pynvml, "_nvmlGetFunctionPointer_cache", {}).clear()
    if library is not None and hasattr(_ctypes, "dlclose"):
        _ctypes.dlclose(library._handle)


def stop() -> None:
    """Shut NVML down. An error here means the driver has already done so."""
    try:
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return


def count_gpus() -> int:
    out, function = ctypes.c_uint(), find_function("nvmlDeviceGetCount_v2")
    require(function(ctypes.byref(out)) if function else pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    return out.value


def listed_gpus(folder: Path = PROC_GPUS) -> frozenset[str]:
    """What the kernel module lists. NVML looks for GPUs only when it starts; this reveals new ones."""
    try:
        return frozenset(entry.name for entry in folder.iterdir())
    except OSError:
        return frozenset()


def _versions() -> Versions:
    return Versions(
        driver=_version("nvmlSystemGetDriverVersion"),
        cuda=_cuda(),
        nvml=_version("nvmlSystemGetNVMLVersion"),
    )


def _version(name: str) -> str | None:
    function, buffer = find_function(name), ctypes.create_string_buffer(96)
    if function is None or function(buffer, len(buffer)) != pynvml.NVML_SUCCESS:
        return None
    return buffer.value.decode(errors="replace")


def _cuda() -> str | None:
    """NVML packs 13.1 as 13010."""
    function, out = find_function("nvmlSystemGetCudaDriverVersion_v2"), ctypes.c_int()
    if function is None or function(ctypes.byref(out)) != pynvml.NVML_SUCCESS:
        return None
    return f"{out.value // 1000}.{out.value % 1000 // 10}"
