"""Writes small traces in Kineto's format; times are in microseconds, easy to add up mentally."""

from __future__ import annotations

import json
from typing import Any

from monitor.traces import Trace, parse

BASE_US = 4_458_676_000_000.0
"""Traces begin at some large number; precision must not suffer."""
PID, MAIN = 100, 1


class Maker:
    """Events are added in any order; `launch` adds the call and what it launches."""

    def __init__(
        self, *, rank: int | None = None, world: int | None = None, card: str | None = "A card"
    ) -> None:
        self.events: list[dict[str, Any]] = []
        self.head: dict[str, Any] = {"schemaVersion": 1}
        if rank is not None:
            self.head["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world}
        if card is not None:
            self.head["deviceProperties"] = [
                {"id": 0, "name": card, "computeMajor": 8, "totalGlobalMem": 1 << 35}
            ]
        self._correlation = 0

    def add(self, cat: str, name: str, at: float, took: float, **more: Any) -> None:
        event = {
            "ph": "X",
            "cat": cat,
            "name": name,
            "pid": PID,
            "tid": MAIN,
            "ts": BASE_US + at,
            "dur": took,
        }
        self.events.append({**event, **more})

    def launch(
        self,
        called: float,
        begin: float,
        took: float,
        *,
        name: str = "a_kernel",
        cat: str = "kernel",
        call: str = "cudaLaunchKernel",
        call_took: float = 2.0,
        stream: int = 7,
        device: int = 0,
        thread: int = MAIN,
        **args: Any,
    ) -> None:
        self._correlation += 1
        args = {"device": device, "stream": stream, "correlation": self._correlation, **args}
        self.add("cuda_runtime", call, called, call_took, tid=thread, args={"correlation": self._correlation})
        self.add(cat, name, begin, took, pid=device, tid=stream, args=args)

    def kernel(self, begin: float, took: float, *, stream: int = 7, device: int = 0, name: str = "k") -> None:
        """Work without a launch in the trace."""
        self.add(
            "kernel", name, begin, took, pid=device, tid=stream, args={"device": device, "stream": stream}
        )

    def copy(self, called: float, begin: float, took: float, name: str, **more: Any) -> None:
        more = {"call": "cudaMemcpyAsync", **more}
        self.launch(called, begin, took, name=f"Memcpy {name}", cat="gpu_memcpy", **more)

    def call(self, name: str, at: float, took: float, *, thread: int = MAIN) -> None:
        self.add("cuda_runtime", name, at, took, tid=thread)

    def op(self, name: str, at: float, took: float, *, thread: int = MAIN, **more: Any) -> None:
        self.add("cpu_op", name, at, took, tid=thread, **more)

    def note(self, name: str, at: float, took: float) -> None:
        self.add("user_annotation", name, at, took)

    def function(self, name: str, at: float, took: float) -> None:
        self.add("python_function", name, at, took)

    def step(self, number: int, at: float, took: float) -> None:
        self.note(f"ProfilerStep#{number}", at, took)

    def data(self) -> bytes:
        return json.dumps({**self.head, "traceEvents": self.events}).encode()

    def trace(self, source: str = "made.json") -> Trace:
        return parse(self.data(), source)


def busy(maker: Maker, *, kernels: int = 200, took: float = 100.0, begin: float = 0.0) -> float:
    """A healthy stretch: everything launched at once, run back to back. Returns its end."""
    for at in range(kernels):
        maker.launch(begin + at, begin + 50 + at * took, took)
    return begin + 50 + kernels * took


def launch_bound(maker: Maker, *, kernels: int = 200, every: float = 100.0, took: float = 20.0) -> None:
    """A kernel of `took` every `every` microseconds, with the host in an operator all the time."""
    for at in range(kernels):
        maker.op("aten::add", at * every, every)
        maker.launch(at * every + 40, at * every + 50, took)
