"""The identity of a GPU, read once when its handle is obtained."""

from __future__ import annotations

import ctypes
from typing import Any

import pynvml

from monitor.gpu.calls import Values, check, find_function, require, text

ARCHITECTURES = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
}


def open_handle(index: int) -> Any:
    """The handle of the GPU at `index`; raises `NvmlFailure` with the reason if it is unavailable."""
    handle = pynvml.c_nvmlDevice_t()
    function = find_function("nvmlDeviceGetHandleByIndex_v2")
    require(function(index, ctypes.byref(handle)) if function else pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    return handle


def identify(index: int, handle: Any) -> Values:
    """The fixed fields of `Gpu` for this handle."""
    return {
        "index": index,
        "uuid": text("nvmlDeviceGetUUID", handle) or f"GPU-unknown-{index}",
        "name": text("nvmlDeviceGetName", handle),
        "pci_bus_id": _bus_id(handle),
        "minor": _number("nvmlDeviceGetMinorNumber", handle),
        "architecture": _architecture(handle),
        "compute_capability": _capability(handle),
    }


def _number(function: str, handle: Any) -> int | None:
    found, out = find_function(function), ctypes.c_uint()
    code = found(handle, ctypes.byref(out)) if found else pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
    check(code)
    return out.value if code == pynvml.NVML_SUCCESS else None


def _architecture(handle: Any) -> str | None:
    number = _number("nvmlDeviceGetArchitecture", handle)
    return ARCHITECTURES.get(number) if number is not None else None


def _bus_id(handle: Any) -> str | None:
    found, out = find_function("nvmlDeviceGetPciInfo_v3"), pynvml.nvmlPciInfo_t()
    code = found(handle, ctypes.byref(out)) if found else pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
    check(code)
    if code != pynvml.NVML_SUCCESS:
        return None
    raw = out.busId
    return raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)


def _capability(handle: Any) -> str | None:
    found = find_function("nvmlDeviceGetCudaComputeCapability")
    major, minor = ctypes.c_int(), ctypes.c_int()
    if found is None:
        return None
    code = found(handle, ctypes.byref(major), ctypes.byref(minor))
    check(code)
    return f"{major.value}.{minor.value}" if code == pynvml.NVML_SUCCESS else None
