"""The functions and classes of `torch._C` that a CPU build lacks, for the stand-in device.

Each name gets its own function object, because torch's compiler keeps a table by object.
"""

import os
import types
from typing import Any

CUDA_TYPE = 1  # c10::DeviceType::CUDA
NAME = "stand-in device"


class DeviceProperties:
    """What torch.cuda.get_device_properties returns."""

    def __init__(self, index: int, total_memory: int) -> None:
        self.name = NAME
        self.major, self.minor = 8, 0
        self.total_memory = total_memory
        self.multi_processor_count = 108
        self.max_threads_per_multi_processor = 2048
        self.warp_size = 32
        self.is_integrated = self.is_multi_gpu_board = 0
        self.regs_per_multiprocessor = 65536
        self.shared_memory_per_block = 49152
        self.shared_memory_per_block_optin = 166912
        self.shared_memory_per_multiprocessor = 167936
        self.L2_cache_size = 40 << 20
        self.gcnArchName = NAME
        self.uuid = f"00000000-0000-4000-8000-{index:012d}"  # the NVML stand-in's, without "GPU-"
        self.pci_bus_id, self.pci_device_id, self.pci_domain_id = 16 + index, 0, 0

    def __repr__(self) -> str:
        return f"_CudaDeviceProperties(name='{self.name}', total_memory={self.total_memory >> 20}MB)"


def attach(torch_c: Any, native: Any, speeds: dict[str, Any]) -> None:
    """Add to `torch._C` what torch.cuda looks for there."""
    torch_c._has_cuda = True
    torch_c._CudaDeviceProperties = DeviceProperties
    torch_c._CudaStreamBase = _stream_class(torch_c, native)
    torch_c._CudaEventBase = _event_class(torch_c, native)
    torch_c._cudart = _runtime_module(native)
    torch_c._nvtx = _nvtx_module()
    for group in (_devices, _streams, _memory, _graphs, _numbers):
        for name, function in group(native, speeds).items():
            setattr(torch_c, name, function)


def _devices(native: Any, speeds: dict[str, Any]) -> dict[str, Any]:
    started_in: list[int] = []

    def init() -> None:
        import torch

        total = int(speeds["memory_gb"] * (1 << 30))
        properties = [DeviceProperties(index, total) for index in range(speeds["devices"])]
        torch.cuda._get_device_properties = lambda index: properties[index]
        torch.cuda.default_generators = tuple(native.default_generators())
        started_in.append(os.getpid())

    def exchange(index: int) -> int:
        before = native.get_device()
        if index >= 0:
            native.set_device(index)
        return int(before)

    def set_device(index: int) -> None:
        if index >= 0:
            native.set_device(index)

    return {
        "_cuda_init": init,
        "_cuda_isInBadFork": lambda: bool(started_in) and started_in[-1] != os.getpid(),
        "_cuda_getDeviceCount": lambda: speeds["devices"],
        "_cuda_getDevice": lambda: native.get_device(),
        "_cuda_setDevice": set_device,
        "_cuda_exchangeDevice": exchange,
        "_cuda_maybeExchangeDevice": lambda index: exchange(index),
        "_cuda_synchronize": lambda: native.synchronize(native.get_device()),
        "_cuda_canDeviceAccessPeer": lambda device, peer: device != peer,
        "_cuda_hasPrimaryContext": lambda index: native.used(),
        "_cuda_set_sync_debug_mode": lambda mode: native.set_sync_debug_mode(mode),
        "_cuda_get_sync_debug_mode": lambda: native.get_sync_debug_mode(),
        "_cuda_sleep": lambda cycles: native.sleep(cycles / 1000.0),  # at 1 GHz
        "_cuda_getArchFlags": lambda: "",
        "_cuda_getCompiledVersion": lambda: 0,
        "_cuda_ipc_collect": lambda: None,
    }


def _streams(native: Any, speeds: dict[str, Any]) -> dict[str, Any]:
    def set_stream(stream_id: int, device_index: int, device_type: int) -> None:
        native.set_device(device_index)
        native.set_stream(device_index, stream_id)

    return {
        "_cuda_getCurrentStream": lambda device: (native.get_stream(device), device, CUDA_TYPE),
        "_cuda_getDefaultStream": lambda device: (0, device, CUDA_TYPE),
        "_cuda_getStreamFromExternal": lambda pointer, device: (pointer, device, CUDA_TYPE),
        "_cuda_getCurrentRawStream": lambda device: native.get_stream(device),
        "_cuda_setStream": set_stream,
    }


def _memory(native: Any, speeds: dict[str, Any]) -> dict[str, Any]:
    return {
        "_cuda_memoryStats": lambda device: native.memory_stats(device),
        "_cuda_resetPeakMemoryStats": lambda device: native.reset_peak(device),
        "_cuda_resetAccumulatedMemoryStats": lambda device: native.reset_accumulated(device),
        "_cuda_emptyCache": lambda: native.empty_cache(),
        "_cuda_setMemoryFraction": lambda fraction, device: None,
        "_cuda_getMemoryFraction": lambda device: 1.0,
        "_cuda_getAllocatorBackend": lambda: "native",
        "_cuda_memorySnapshot": lambda pool=None: {"segments": [], "device_traces": []},
        "_cuda_cudaCachingAllocator_is_enabled": lambda: True,
        "_cuda_cudaCachingAllocator_enable": lambda on: None,
        "_cuda_clearCublasWorkspaces": lambda: None,
    }


def _graphs(native: Any, speeds: dict[str, Any]) -> dict[str, Any]:
    """There is no capture here: nothing is ever being captured, and beginning one is an error."""

    class Graph:
        def __new__(cls, *args: Any, **kwargs: Any) -> "Graph":
            raise RuntimeError("the stand-in device has no CUDA graphs")

    def pool_handle() -> None:
        raise RuntimeError("the stand-in device has no CUDA graphs")

    return {
        "_CUDAGraph": Graph,
        "_graph_pool_handle": pool_handle,
        "_cuda_isCurrentStreamCapturing": lambda: False,
    }


def _numbers(native: Any, speeds: dict[str, Any]) -> dict[str, Any]:
    limit = [10]

    def set_limit(value: int) -> None:
        limit[0] = value

    return {
        "_cuda_get_cudnn_benchmark_limit": lambda: limit[0],
        "_cuda_set_cudnn_benchmark_limit": set_limit,
        "_cuda_get_conv_benchmark_empty_cache": lambda: True,
        "_cuda_getCurrentBlasHandle": lambda: 0,
        "_cuda_tunableop_is_enabled": lambda: False,
    }


def _stream_class(torch_c: Any, native: Any) -> type:
    class CudaStreamBase(torch_c.Stream):  # type: ignore[misc,name-defined]
        def __new__(cls, priority: int = 0, **identity: Any) -> Any:
            if "stream_ptr" in identity:
                identity = {"stream_id": identity["stream_ptr"], "device_index": native.get_device()}
            if "stream_id" in identity:
                identity.setdefault("device_type", CUDA_TYPE)
                return super().__new__(cls, **identity)
            return super().__new__(cls, device=f"cuda:{native.get_device()}", priority=priority)

        @property
        def cuda_stream(self) -> int:
            return int(self.stream_id)

        @property
        def priority(self) -> int:
            return -1 if self.stream_id > 32 else 0

        @staticmethod
        def priority_range() -> tuple[int, int]:
            return (0, -1)

    return CudaStreamBase


def _event_class(torch_c: Any, native: Any) -> type:
    class CudaEventBase(torch_c.Event):  # type: ignore[misc,name-defined]
        def __new__(
            cls,
            enable_timing: bool = False,
            blocking: bool = False,
            interprocess: bool = False,
            external: bool = False,
        ) -> Any:
            return super().__new__(cls, device="cuda", enable_timing=enable_timing)

        @property
        def cuda_event(self) -> int:
            return int(self.event_id)

        def elapsed_time(self, end_event: Any) -> float:
            """Torch's own accepts no subclass of torch.Event."""
            if not self.event_id or not end_event.event_id:
                raise RuntimeError("Both events must be recorded before calculating elapsed time.")
            if not self.query() or not end_event.query():
                raise RuntimeError("Both events must be completed before calculating elapsed time.")
            return float(native.elapsed_ms(self.event_id, end_event.event_id))

    return CudaEventBase


def _runtime_module(native: Any) -> types.ModuleType:
    module = types.ModuleType("torch._C._cudart")
    module.cudaError = type("cudaError", (int,), {"success": 0})
    module.cudaGetErrorString = lambda code: f"stand-in error {int(code)}"
    module.cudaMemGetInfo = lambda device: native.memory_info(device)
    module.cudaProfilerStart = lambda: 0
    module.cudaProfilerStop = lambda: 0
    module.cudaHostRegister = lambda pointer, size, flags: 0
    module.cudaHostUnregister = lambda pointer: 0
    return module


def _nvtx_module() -> types.ModuleType:
    """Ranges are accepted and forgotten."""
    module = types.ModuleType("torch._C._nvtx")
    module.rangePushA = lambda message: 0
    module.rangePop = lambda: 0
    module.rangeStartA = lambda message: 0
    module.rangeEnd = lambda number: None
    module.markA = lambda message: None
    module.deviceRangeStart = lambda message, stream: 0
    module.deviceRangeEnd = lambda handle, stream: None
    return module
