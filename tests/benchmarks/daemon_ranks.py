"""What the daemon costs while others train: no rank, 8 runs of one rank, one run of 64 ranks.

    python -m tests.benchmarks.daemon_ranks [--seconds 60] [--gpus 8]

Every rank makes 100 steps a second, the GPUs are those of the NVML stand-in, and the daemon is scraped once a
second. CPU time comes from the kernel's accounts. In a stretch of its own: how long a scrape takes.
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import os
import platform
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks import daemon
from tests.conftest import wait_for
from tests.nvml.standin import StandIn
from tests.soak.writers import Writers

WARM_UP_SECONDS = 75.0
"""Longer than the rolling window of a run's figures, and than a run counts as young."""
SCRAPES_PER_SECOND = 4
"""For the time of a scrape, in a stretch of its own."""


class Load(NamedTuple):
    name: str
    runs: tuple[str, ...]
    ranks: int
    most_cpu: float
    """CPU-s a minute at most."""


LOADS = (
    Load("no rank", (), 0, 0.3),
    Load("8 runs of one rank", tuple(f"bench-{at}" for at in range(8)), 1, 0.8),
    Load("one run of 64 ranks", ("bench",), 64, 3.0),
)
MOST_P99_MS = 20.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--gpus", type=int, default=8)
    args = parser.parse_known_args()[0]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        found = measure(Path(folder), args.gpus, args.seconds)
    met = targets(found)
    command = f"python -m tests.benchmarks.daemon_ranks --seconds {args.seconds:g} --gpus {args.gpus}"
    text = "\n".join([*_head(command, args.gpus), *table(found), *_met(met), ""])
    result = {"command": command, "date": time.strftime("%Y-%m-%d"), "loads": found, "targets_met": met}
    (daemon.OUT / "daemon_ranks.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    (daemon.OUT / "daemon_ranks.md").write_text(text, encoding="utf-8")
    print(text)
    return 0 if all(met.values()) else 1


def _head(command: str, gpus: int) -> list[str]:
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    return [
        f"# Daemon: what watching runs beside {gpus} GPUs costs",
        "",
        f"`{command}` on {time.strftime('%Y-%m-%d')}, {machine}.",
        "",
    ]


def _met(targets: dict[str, bool]) -> list[str]:
    return [f"- {'met' if met else 'NOT met'}: {target}" for target, met in targets.items()]


def measure(folder: Path, gpus: int, seconds: float) -> dict[str, dict[str, float]]:
    """Load by load; figures by name."""
    return {load.name: _under(load, folder / str(at), gpus, seconds) for at, load in enumerate(LOADS)}


def _under(load: Load, folder: Path, gpus: int, seconds: float) -> dict[str, float]:
    with ExitStack() as stack:
        nvml, port = stack.enter_context(StandIn(gpus=gpus)), daemon.free_port()
        environment = {**os.environ, **nvml.environment()}
        process = stack.enter_context(daemon.child(daemon.our_command(folder, port), environment))
        daemon.wait_until_served(port)
        if load.runs:
            stack.enter_context(Writers(folder, load.runs, load.ranks, churn=math.inf))
            wait_for(lambda: _ranks(port) == len(load.runs) * load.ranks, every=0.5)
        daemon.scrape_each_second({"gpumon": port}, WARM_UP_SECONDS)
        before, begin, made = daemon.cpu_seconds(process), time.monotonic(), _snapshots(port)
        series = daemon.scrape_each_second({"gpumon": port}, seconds)["gpumon"]
        used, minutes = daemon.cpu_seconds(process) - before, (time.monotonic() - begin) / 60
        made = _snapshots(port) - made
        return {
            "cpu_seconds_per_minute": round(used / minutes, 3),
            "goal": load.most_cpu,
            "ticks_missed": max(0, round(minutes * 60 - 1) - made),
            "cpu_ms_per_tick": round(1e3 * used / made, 1),
            "rss_mib": round(process.memory_info().rss / 2**20, 1),
            "series": series,
            **_scrape_times(port, seconds),
        }


def _snapshots(port: int) -> int:
    """How many the daemon has made: one that misses ticks costs less than it should."""
    lines = daemon.fetch(port)[1].decode().splitlines()
    return int(next(float(line.split()[1]) for line in lines if line.startswith("gpumon_snapshots_total ")))


def _ranks(port: int) -> int:
    return daemon.fetch(port)[1].count(b"\ngpumon_rank_up{")


def _scrape_times(port: int, seconds: float) -> dict[str, float]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    taken = []
    for _ in range(int(seconds * SCRAPES_PER_SECOND)):
        taken.append(daemon.timed_scrape(connection) * 1e3)
        time.sleep(1 / SCRAPES_PER_SECOND)
    connection.close()
    taken.sort()
    return {"p50_ms": round(taken[len(taken) // 2], 2), "p99_ms": round(taken[int(len(taken) * 0.99)], 2)}


def targets(found: dict[str, dict[str, float]]) -> dict[str, bool]:
    met = {
        f"{name}: at most {one['goal']:g} CPU-s a minute": one["cpu_seconds_per_minute"] <= one["goal"]
        for name, one in found.items()
    }
    met["no tick missed"] = not any(one["ticks_missed"] for one in found.values())
    slowest = max(one["p99_ms"] for one in found.values())
    return met | {f"99 of 100 scrapes under {MOST_P99_MS:g} ms": slowest <= MOST_P99_MS}


def table(found: dict[str, dict[str, float]]) -> list[str]:
    rows = [
        "100 steps a second and rank, scraped every second; then the time of a scrape at "
        f"{SCRAPES_PER_SECOND} a second:",
        "",
        "| load | CPU-s per minute | ticks missed | resident MiB | series | scrape: median | p99 |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, one in found.items():
        rows.append(
            f"| {name} | {one['cpu_seconds_per_minute']} | {one['ticks_missed']:g} | {one['rss_mib']} |"
            f" {one['series']} | {one['p50_ms']} ms | {one['p99_ms']} ms |"
        )
    return [*rows, ""]


if __name__ == "__main__":
    sys.exit(main())
