"""What host readings cost: one tick with 4 trainers of 8 workers each, beside the same with psutil.

    python -m tests.benchmarks.host

CPU time of this process per tick; the two readers take turns, so that noise hits both alike, and rest
between ticks, so that caches are as cold as in a daemon that wakes once a second.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from monitor.host.portable import PortableHost
from monitor.host.reader import Backend, HostReader
from monitor.model.clock import Moment

TRAINERS, WORKERS, THREADS = 4, 8, 16
ROUNDS, WARM_UP = 64, 3
PAUSE_SECONDS = 0.15
DOCS = Path(__file__).parents[2] / "docs/benchmarks"
BUDGET_MS = 3.0

TRAINER = f"""
import multiprocessing, threading, time
for _ in range({WORKERS}):
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(120,), daemon=True).start()
for _ in range({THREADS}):
    threading.Thread(target=time.sleep, args=(120,), daemon=True).start()
print("ready", flush=True)
time.sleep(120)
"""


def start_trainers() -> list[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", TRAINER]
    found = [
        subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) for _ in range(TRAINERS)
    ]
    for child in found:
        assert child.stdout is not None
        child.stdout.readline()
    return found


def tick(reader: HostReader | Backend, trainers: dict[int, tuple[str, int]], at: int) -> int:
    """One tick, `at` seconds into the run: the periods of slow facts pass without waiting for them."""
    now = Moment(time.time(), time.monotonic() + at * (1.0 - PAUSE_SECONDS))
    reader.read(now)
    return len(reader.processes(now, trainers, ())[0])


def cost_ms(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return (time.process_time() - begin) * 1e3


def measure(trainers: dict[int, tuple[str, int]]) -> dict[str, list[float]]:
    readers: dict[str, HostReader | Backend] = {
        "gpumon": HostReader(),
        "psutil": PortableHost(max_processes=512),
    }
    costs: dict[str, list[float]] = {name: [] for name in readers}
    for at in range(ROUNDS):
        time.sleep(PAUSE_SECONDS)
        for name, reader in readers.items():
            costs[name].append(cost_ms(lambda reader=reader, at=at: tick(reader, trainers, at)))  # type: ignore[misc]
    for reader in readers.values():
        reader.close()
    return costs


def summary(costs: dict[str, list[float]]) -> dict[str, object]:
    steady = {name: values[WARM_UP:] for name, values in costs.items()}
    means = {name: statistics.fmean(values) for name, values in steady.items()}
    return {
        "command": "python -m tests.benchmarks.host",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processes": TRAINERS * (1 + WORKERS),
        "machine_processes": sum(name.isdigit() for name in os.listdir("/proc")),
        "first_tick_ms": {name: round(values[0], 3) for name, values in costs.items()},
        "median_ms": {name: round(statistics.median(values), 3) for name, values in steady.items()},
        "mean_ms": {name: round(value, 3) for name, value in means.items()},
        "max_ms": {name: round(max(values), 3) for name, values in steady.items()},
        "cpu_seconds_per_minute_at_1s": {name: round(value * 60 / 1e3, 4) for name, value in means.items()},
        "ratio_psutil_to_gpumon": round(means["psutil"] / means["gpumon"], 2),
        "budget_ms": BUDGET_MS,
        "within_budget": means["gpumon"] <= BUDGET_MS,
    }


def table(result: dict[str, object]) -> str:
    lines = [
        "# Cost of host readings",
        "",
        f"`{result['command']}`, {result['date']}: {result['processes']} training processes "
        f"({TRAINERS} trainers × {WORKERS} workers) of {result['machine_processes']} on the machine; "
        f"{ROUNDS} ticks with a rest before each, the two readers in turns. The psutil loop reads less "
        "(no pressure, no limits, no container, no I/O).",
        "",
        "| CPU per tick | gpumon | psutil loop |",
        "|---|---|---|",
    ]
    for key in ("first_tick_ms", "median_ms", "mean_ms", "max_ms", "cpu_seconds_per_minute_at_1s"):
        figures = result[key]
        assert isinstance(figures, dict)
        lines.append(f"| {key} | {figures['gpumon']} | {figures['psutil']} |")
    lines += ["", f"psutil / gpumon: {result['ratio_psutil_to_gpumon']} · budget {BUDGET_MS} ms a tick."]
    return "\n".join(lines) + "\n"


def main() -> int:
    children = start_trainers()
    try:
        result = summary(measure({child.pid: ("run", rank) for rank, child in enumerate(children)}))
    finally:
        for child in children:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    DOCS.mkdir(parents=True, exist_ok=True)
    (DOCS / "host.json").write_text(json.dumps(result, indent=2) + "\n")
    (DOCS / "host.md").write_text(table(result))
    print(table(result))
    return 0 if result["within_budget"] else 1


if __name__ == "__main__":
    sys.exit(main())
