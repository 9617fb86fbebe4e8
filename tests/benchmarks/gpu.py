"""What one full reading of 8 GPUs costs on the NVML stand-in: time, CPU and memory.

    python -m tests.benchmarks.gpu

Compared with a loop that asks nine readings a GPU through pynvml's own wrappers: far less than
gpumon reads, and what most small exporters do.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.nvml.standin import Proc, StandIn

GPUS, TICKS, INTERVAL = 8, 15, 1.0
OUT = Path(__file__).parents[2] / "docs" / "benchmarks"
BUDGET_MS = 3.0


def main() -> int:
    with StandIn(gpus=GPUS) as nvml:
        for index in range(GPUS):
            nvml.gpu(index).processes(Proc(pid=os.getpid(), memory=6 << 30, sm=50))
        ours = _child("ours", nvml)
        bare = _child("bare", nvml)
    figures = {
        "command": "python -m tests.benchmarks.gpu",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "gpus": GPUS,
        "interval_seconds": INTERVAL,
        "budget_cpu_ms_per_read": BUDGET_MS,
        "gpumon": ours,
        "bare_pynvml": bare,
    }
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "gpu.json").write_text(json.dumps(figures, indent=2) + "\n")
    (OUT / "gpu.md").write_text(_table(figures))
    print(_table(figures))
    return 0 if ours["cpu_ms_per_read"] <= BUDGET_MS else 1


def _child(kind: str, nvml: StandIn) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.gpu", kind],
        env={**os.environ, **nvml.environment()},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _measure(read: Callable[[], Any]) -> dict[str, float]:
    """`TICKS` readings at `INTERVAL`, after two that are not counted."""
    read()
    read()
    walls, start, cpu = [], time.monotonic(), time.process_time()
    for number in range(TICKS):
        time.sleep(max(0.0, start + (number + 1) * INTERVAL - time.monotonic()))
        began = time.perf_counter()
        read()
        walls.append(time.perf_counter() - began)
    spent = time.process_time() - cpu
    return {
        "cpu_ms_per_read": round(1000 * spent / TICKS, 3),
        "wall_ms_p50": round(1000 * statistics.median(walls), 3),
        "wall_ms_max": round(1000 * max(walls), 3),
        "cpu_seconds_per_minute": round(60 * spent / (TICKS * INTERVAL), 4),
        "rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def _ours() -> dict[str, float]:
    from monitor.gpu.source import open_source
    from monitor.model.clock import Moment

    source = open_source("nvml", interval=INTERVAL)
    figures = _measure(lambda: source.read(Moment.now(), None))
    source.close()
    return figures


def _bare() -> dict[str, float]:
    import pynvml

    pynvml.nvmlInit()
    handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]

    def read() -> None:
        for handle in handles:
            pynvml.nvmlDeviceGetUtilizationRates(handle)
            pynvml.nvmlDeviceGetMemoryInfo(handle)
            pynvml.nvmlDeviceGetPowerUsage(handle)
            pynvml.nvmlDeviceGetTemperature(handle, 0)
            pynvml.nvmlDeviceGetClockInfo(handle, 1)
            pynvml.nvmlDeviceGetClockInfo(handle, 2)
            pynvml.nvmlDeviceGetFanSpeed(handle)
            pynvml.nvmlDeviceGetPerformanceState(handle)
            pynvml.nvmlDeviceGetComputeRunningProcesses(handle)

    return _measure(read)


def _table(figures: dict[str, Any]) -> str:
    ours, bare = figures["gpumon"], figures["bare_pynvml"]
    rows = [f"| {key} | {ours[key]} | {bare[key]} |" for key in ours]
    return "\n".join(
        [
            f"# One reading of {figures['gpus']} GPUs",
            "",
            f"`{figures['command']}`, {figures['date']}, on the NVML stand-in, every "
            f"{figures['interval_seconds']:g} s; budget {figures['budget_cpu_ms_per_read']:g} ms CPU.",
            "",
            "| figure | gpumon (all readings) | bare pynvml (nine readings) |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps({"ours": _ours, "bare": _bare}[sys.argv[1]]()))
        sys.exit(0)
    sys.exit(main())
