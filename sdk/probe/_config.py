"""The configuration: loader, optimizer, model, precision, threads, allocator. See docs/probe.md.

Each part is read separately: one that fails (reading `allow_tf32` raises once `fp32_precision` has been set)
is omitted and the rest kept. Unknown values are absent.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from types import CodeType
from typing import Any

from ..loader.maker import is_authors
from ..structure.files import is_user_file, short_path
from ._model import model_part
from .classes import torch_class

ENVIRONMENT = (
    "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS", "CUBLAS_WORKSPACE_CONFIG",
    "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "KMP_BLOCKTIME", "LD_PRELOAD", "MALLOC_CONF", "MKL_NUM_THREADS",
    "NCCL_ALGO", "NCCL_DEBUG", "NCCL_IB_DISABLE", "NCCL_P2P_DISABLE", "NCCL_SOCKET_IFNAME", "OMP_NUM_THREADS",
    "OMP_PROC_BIND", "OMP_WAIT_POLICY", "OPENBLAS_NUM_THREADS", "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING", "TOKENIZERS_PARALLELISM", "TORCH_LOGS",
    "TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE", "TORCH_CUDNN_V8_API_DISABLED", "TORCH_DISTRIBUTED_DEBUG",
)  # fmt: skip
_MOST_DEVICES = 16
"""Chosen: devices named per process."""
_CPUINFO = 4096
"""The first core's lines are within this many characters."""
_EXPECTED = (
    AttributeError,
    RuntimeError,
    TypeError,
    ValueError,
    KeyError,
    OSError,
    ImportError,
)


def read(part: Callable[[], Any]) -> Any:
    """The part, or None if it cannot be read."""
    try:
        return part()
    except _EXPECTED:
        return None


def take(parts: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """Every part that can be read."""
    found = {name: read(part) for name, part in parts.items()}
    return {name: value for name, value in found.items() if value is not None}


def process_config() -> dict[str, Any]:
    """What can be known without torch."""
    return take(
        {
            "python": lambda: sys.version.split()[0],
            "cpu_count": os.cpu_count,
            "cpu_model": _cpu_model,
            "cpu_affinity": lambda: len(os.sched_getaffinity(0)),
            "visible_devices": lambda: os.environ.get("CUDA_VISIBLE_DEVICES"),
            "env": lambda: {name: os.environ[name][:200] for name in ENVIRONMENT if name in os.environ},
        }
    )


def _cpu_model() -> str | None:
    """The kernel's name for it; all cores of a machine have the same."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        lines = file.read(_CPUINFO).splitlines()
    named = (line.partition(":")[2] for line in lines if line.startswith(("model name", "Hardware", "Model")))
    return next((" ".join(name.split()) for name in named), None)


def torch_config(torch: Any) -> dict[str, Any]:
    """torch's own switches."""
    return take(
        {
            "torch": lambda: str(torch.__version__),
            "cuda": lambda: torch.version.cuda,
            "precision": lambda: _precision(torch),
            "cudnn": lambda: take(
                {
                    "benchmark": lambda: torch.backends.cudnn.benchmark,
                    "deterministic": lambda: torch.backends.cudnn.deterministic,
                }
            ),
            "anomaly": torch.is_anomaly_enabled,
            "deterministic_algorithms": torch.are_deterministic_algorithms_enabled,
            "threads": lambda: take(
                {
                    "torch": torch.get_num_threads,
                    "interop": torch.get_num_interop_threads,
                    "omp_env": lambda: os.environ.get("OMP_NUM_THREADS"),
                }
            ),
            "allocator": lambda: _allocator(torch),
        }
    )


def _precision(torch: Any) -> dict[str, Any]:
    return take(
        {
            "matmul_tf32": lambda: torch.backends.cuda.matmul.allow_tf32,
            "cudnn_tf32": lambda: torch.backends.cudnn.allow_tf32,
            "matmul_precision": torch.get_float32_matmul_precision,
        }
    )


def _allocator(torch: Any) -> dict[str, Any]:
    conf = os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or os.environ.get("PYTORCH_ALLOC_CONF")
    return take({"conf": lambda: conf, "backend": torch.cuda.memory.get_allocator_backend})


def loader_config(loader: Any, watch: Any) -> dict[str, Any]:
    """Every DataLoader setting that affects speed."""
    context = getattr(loader, "multiprocessing_context", None)
    return take(
        {
            "num_workers": lambda: loader.num_workers,
            "batch_size": lambda: _batch_size(loader),
            "prefetch_factor": lambda: loader.prefetch_factor,
            "pin_memory": lambda: bool(loader.pin_memory),
            "persistent_workers": lambda: bool(loader.persistent_workers),
            "drop_last": lambda: bool(loader.drop_last),
            "sampler": lambda: _name(loader.sampler),
            "batch_sampler": lambda: _name(loader.batch_sampler),
            "collate": lambda: _function(loader.collate_fn),
            "own": lambda: is_authors(loader),
            "collate_own": lambda: _is_own(loader.collate_fn),
            "collate_at": lambda: _place(loader.collate_fn),
            "dataset": lambda: _name(loader.dataset),
            "dataset_len": lambda: len(loader.dataset),
            "dataset_resident": lambda: True if _is_resident(loader.dataset) else None,
            "start_method": lambda: (context or _default_context()).get_start_method(),
            "whole_batch_seconds": watch.whole_batch_seconds,
            "has_getitems": lambda: hasattr(loader.dataset, "__getitems__"),
            "iterable": lambda: not hasattr(type(loader.dataset), "__getitem__") or _is_iterable(loader),
            "in_order": lambda: getattr(loader, "in_order", None),
            "epochs_started": lambda: watch.epochs_started,
            "workers_started": lambda: watch.workers_started,
        }
    )


def _is_own(function: Any) -> bool | None:
    """Whether the function is the author's own code; None if unknown."""
    code = _code(function)
    return is_user_file(code.co_filename) if code is not None else None


def _place(function: Any) -> list[Any] | None:
    """(file, first line, last line) of the author's own function, whatever kind of function it is."""
    code = _code(function)
    if code is None or not is_user_file(code.co_filename):
        return None
    return [short_path(code.co_filename), code.co_firstlineno, _last_line(code)]


def _code(function: Any) -> CodeType | None:
    """Of a function, a method, a `functools.partial` or an object that is called."""
    plain = _plain(function)
    code = getattr(plain, "__code__", None) or getattr(type(plain).__call__, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _plain(function: Any) -> Any:
    while isinstance(function, partial):
        function = function.func
    return function


def _last_line(code: CodeType) -> int:
    inner = (_last_line(one) for one in code.co_consts if isinstance(one, CodeType))
    return max(code.co_firstlineno, *(line or 0 for _, _, line in code.co_lines()), *inner)


def _is_resident(dataset: Any) -> bool:
    """Samples are rows of tensors or of a list in memory, or a subset of these: no code of the author's
    produces them."""
    data = sys.modules["torch.utils.data"]
    if type(dataset) is data.Subset:
        return _is_resident(dataset.dataset)
    if type(dataset) is data.ConcatDataset:
        return all(map(_is_resident, dataset.datasets))
    return type(dataset) in (data.TensorDataset, list, tuple)


def _is_iterable(loader: Any) -> bool:
    return bool(getattr(loader, "_dataset_kind", 0))


def _batch_size(loader: Any) -> int | None:
    size = loader.batch_size
    return size if size is not None else getattr(loader.batch_sampler, "batch_size", None)


def _default_context() -> Any:
    import multiprocessing

    return multiprocessing


def _name(thing: Any) -> str | None:
    return None if thing is None else type(thing).__name__


def _function(thing: Any) -> str:
    thing = _plain(thing)
    return getattr(thing, "__name__", None) or type(thing).__name__


def optimizer_config(optimizer: Any) -> dict[str, Any]:
    groups = optimizer.param_groups
    return take(
        {
            "class": lambda: type(optimizer).__name__,
            "kind": lambda: torch_class(optimizer) or "",
            "fused": lambda: groups[0].get("fused"),
            "foreach": lambda: groups[0].get("foreach"),
            "capturable": lambda: groups[0].get("capturable"),
            "lr": lambda: float(groups[0]["lr"]),
            "param_groups": lambda: len(groups),
        }
    )


def devices_of(torch: Any, optimizer: Any) -> list[str]:
    """The devices of its parameters, in order, then others of this kind where the process holds memory:
    replicas and other models may work there. The CPU only if there is no other."""
    found = dict.fromkeys(str(one.device) for group in optimizer.param_groups for one in group["params"])
    devices = [device for device in found if device != "cpu"]
    more = (read(lambda: _with_memory(torch, devices[0])) or []) if devices else []
    return list(dict.fromkeys([*devices, *more]))[:_MOST_DEVICES] or list(found)


def _with_memory(torch: Any, device: str) -> list[str]:
    """Asks torch's allocator, not the driver: that would open a device which is not in use."""
    kind = device.partition(":")[0]
    module = getattr(torch, kind)
    return [f"{kind}:{at}" for at in range(module.device_count()) if module.memory_reserved(at)]


def cuda_config(torch: Any, device: str | None) -> dict[str, Any]:
    """Name and uuid of the parameters' device; read only if CUDA is already in use."""
    if device is None or not device.startswith("cuda") or not torch.cuda.is_initialized():
        return {}
    properties = torch.cuda.get_device_properties(device)
    return take(
        {
            "gpu_name": lambda: properties.name,
            "device_uuid": lambda: _uuid(properties),
            "gpu_memory_bytes": lambda: properties.total_memory,
        }
    )


def _uuid(properties: Any) -> str:
    text = str(properties.uuid)
    return text if text.startswith(("GPU-", "MIG-")) else f"GPU-{text}"


def training_config(torch: Any, optimizer: Any, model: Any) -> dict[str, Any]:
    """What the first optimizer step reveals."""
    devices = read(lambda: devices_of(torch, optimizer)) or []
    device = devices[0] if devices else None
    found = take(
        {
            "device": lambda: device,
            "devices": lambda: devices if len(devices) > 1 else None,
            "optimizer": lambda: optimizer_config(optimizer),
            "model": lambda: model_part(torch, optimizer, model),
        }
    )
    return found | (read(lambda: cuda_config(torch, device)) or {})
