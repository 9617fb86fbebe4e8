"""A made-up trace of any size, with the mix of events and the long kernel names that real ones have."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

KERNELS = (
    "volta_sgemm_64x64_nt",
    "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 128, true, 1>(float, float, float, float, "
    "cudnnTensorStruct, float const*, cudnnTensorStruct, float const*, cudnnTensorStruct, float*)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array"
    "<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
)
OPS = ("aten::add", "aten::convolution", "autograd::engine::evaluate_function: ConvolutionBackward0")
EVENTS_PER_LAUNCH = 10
"""Five operators, two calls, two ends of an arrow, a kernel: about what a training step records."""
STEP = 2000
"""Launches in a profiler step."""


def events(count: int) -> Iterator[dict[str, Any]]:
    now = 1_712_195_495_000.0
    for launch in range(count // EVENTS_PER_LAUNCH):
        if launch % STEP == 0:
            took = STEP * 30.0
            yield _host("user_annotation", f"ProfilerStep#{launch // STEP}", now, took, {"Ev Idx": launch})
        yield from _launch(launch, now)
        now += 30.0


FIRST_ID = 130_000
"""Ids of launches count from the start of a process, long before the trace."""


def _launch(launch: int, now: float) -> Iterator[dict[str, Any]]:
    number = FIRST_ID + launch
    for depth in range(5):
        operator = {
            "External id": number,
            "Record function id": 0,
            "Sequence number": number,
            "Ev Idx": number,
        }
        yield _host("cpu_op", OPS[depth % len(OPS)], now + depth, 28.0 - 2 * depth, operator)
    call = {"External id": number, "cbid": 211, "correlation": number}
    yield _host("cuda_runtime", "cudaLaunchKernel", now + 10, 6.0, call)
    yield _host("cuda_runtime", "cudaEventQuery", now + 17, 1.0, {"External id": number, "cbid": 3})
    yield {
        "ph": "s",
        "id": number,
        "pid": 1102,
        "tid": 1102,
        "ts": now + 10,
        "cat": "ac2g",
        "name": "ac2g",
    }
    yield {
        "ph": "f",
        "id": number,
        "pid": 0,
        "tid": 7,
        "ts": now + 40,
        "cat": "ac2g",
        "name": "ac2g",
        "bp": "e",
    }
    args: dict[str, object] = {
        "External id": number,
        "queued": 0,
        "device": 0,
        "context": 1,
        "stream": 7,
        "correlation": number,
        "registers per thread": 40,
        "shared memory": 400,
        "blocks per SM": 4.740741,
        "warps per SM": 75.851852,
        "grid": [512, 1, 1],
        "block": [512, 1, 1],
        "est. achieved occupancy %": 75,
    }
    name = KERNELS[number % len(KERNELS)]
    yield {**_host("kernel", name, now + 40, 25.0, args), "pid": 0, "tid": 7}


def _host(cat: str, name: str, at: float, took: float, args: dict[str, Any]) -> dict[str, Any]:
    event = {"ph": "X", "cat": cat, "name": name, "pid": 1102, "tid": 1102}
    return {**event, "ts": round(at, 3), "dur": round(took, 3), "args": args}


def write(folder: Path, count: int) -> list[Path]:
    """The same trace plain and compressed."""
    content = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "a made-up card", "computeMajor": 7}],
        "traceEvents": list(events(count)),
    }
    data = json.dumps(content, indent=1).encode()
    plain, packed = folder / "made.json", folder / "made.json.gz"
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data, 6))
    return [plain, packed]
