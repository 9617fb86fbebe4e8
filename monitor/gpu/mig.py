"""MIG: whether the GPU is partitioned, and what its instances use."""

from __future__ import annotations

import ctypes
from typing import Any

import pynvml
from msgspec import Struct

from monitor.gpu.calls import RETRY_ABSENT, check, find_function, text
from monitor.model.gpu import MigInstance

MODE_PERIOD = 5.0


class _Instance(Struct):
    """A handle with the fixed facts about its instance."""

    handle: Any
    uuid: str
    name: str | None
    gpu_instance: int | None
    compute_instance: int | None


class Mig:
    """MIG state of one GPU. Mode and instances are looked up again every few seconds."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._look_at = 0.0
        self._instances: list[_Instance] = []
        self.enabled: bool | None = None
        self.changed = False
        """True after a `refresh` that found the mode switched: different readings may be supported now."""

    def refresh(self, now: float) -> None:
        if now < self._look_at:
            self.changed = False
            return
        before, self.enabled = self.enabled, self._mode()
        self.changed = before is not None and before != self.enabled
        self._look_at = now + (MODE_PERIOD if self.enabled is not None else RETRY_ABSENT)
        self._instances = self._look_up() if self.enabled else []

    def uuids(self) -> dict[tuple[int, int], str]:
        """(GPU instance, compute instance) → UUID, to tell which instance a process runs on."""
        return {
            (part.gpu_instance, part.compute_instance): part.uuid
            for part in self._instances
            if part.gpu_instance is not None and part.compute_instance is not None
        }

    def read(self) -> tuple[MigInstance, ...]:
        return tuple(self._read_one(part) for part in self._instances)

    def _mode(self) -> bool | None:
        found = find_function("nvmlDeviceGetMigMode")
        current, pending = ctypes.c_uint(), ctypes.c_uint()
        code = found(self._handle, ctypes.byref(current), ctypes.byref(pending)) if found else 13
        check(code)
        return None if code else current.value == 1

    def _look_up(self) -> list[_Instance]:
        """Instances may sit at any index below the maximum; NOT_FOUND is a gap, not the end."""
        found, most = [], _number("nvmlDeviceGetMaxMigDeviceCount", self._handle) or 0
        for index in range(most):
            handle = pynvml.c_nvmlDevice_t()
            code = pynvml.nvmlLib.nvmlDeviceGetMigDeviceHandleByIndex(
                self._handle, index, ctypes.byref(handle)
            )
            check(code)
            if not code:
                found.append(self._describe(index, handle))
        return found

    def _describe(self, index: int, handle: Any) -> _Instance:
        return _Instance(
            handle,
            uuid=text("nvmlDeviceGetUUID", handle) or f"MIG-unknown-{index}",
            name=text("nvmlDeviceGetName", handle),
            gpu_instance=_number("nvmlDeviceGetGpuInstanceId", handle),
            compute_instance=_number("nvmlDeviceGetComputeInstanceId", handle),
        )

    def _read_one(self, part: _Instance) -> MigInstance:
        memory, found = pynvml.c_nvmlMemory_t(), find_function("nvmlDeviceGetMemoryInfo")
        code = found(part.handle, ctypes.byref(memory)) if found else 13
        check(code)
        return MigInstance(
            uuid=part.uuid,
            name=part.name,
            gpu_instance=part.gpu_instance,
            compute_instance=part.compute_instance,
            memory_used_bytes=None if code else memory.used,
            memory_total_bytes=None if code else memory.total,
        )


def _number(function: str, handle: Any) -> int | None:
    found, out = find_function(function), ctypes.c_uint()
    code = found(handle, ctypes.byref(out)) if found else pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
    check(code)
    return None if code else out.value
