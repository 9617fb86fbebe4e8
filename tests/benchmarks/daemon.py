"""What watching costs: our daemon, nvitop-exporter and a bare loop, side by side on the stand-in.

All three read the same 8 GPUs every second in one run, both exporters are scraped once a second the
way Prometheus scrapes. CPU time and resident memory come from the kernel's accounts. The second part
is the time of one scrape answered from cache, at 2,000 series.

    python -m tests.benchmarks.daemon [--seconds 60] [--gpus 8]
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.nvml.standin import StandIn

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "benchmarks"
PEER = "nvitop-exporter==1.7.2"
ACCEPT = {
    "Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5",
    "Accept-Encoding": "gzip",
}
WARM_UP_SECONDS = 5.0
SERIES = 2000

BARE_LOOP = """
import time, psutil, pynvml
pynvml.nvmlInit()
cards = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
while True:
    for card in cards:
        pynvml.nvmlDeviceGetUtilizationRates(card)
        pynvml.nvmlDeviceGetMemoryInfo(card)
        pynvml.nvmlDeviceGetPowerUsage(card)
        pynvml.nvmlDeviceGetTemperature(card, pynvml.NVML_TEMPERATURE_GPU)
    psutil.cpu_percent()
    psutil.virtual_memory()
    time.sleep(1.0)
"""


def main() -> int:
    args = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        shared = side_by_side(Path(folder), args.gpus, args.seconds)
        scrape = scrape_latency(Path(folder))
    result = _result(args, shared, scrape)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "daemon.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    (OUT / "daemon.md").write_text(_table(result), encoding="utf-8")
    print(_table(result))
    return 0 if all(result["targets_met"].values()) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--gpus", type=int, default=8)
    return parser.parse_known_args()[0]


# ── Side by side ─────────────────────────────────────────────────────────────────────────────────


def side_by_side(folder: Path, gpus: int, seconds: float) -> dict[str, dict[str, float]]:
    """CPU and memory of the three programs over the same seconds."""
    with ExitStack() as stack:
        nvml = stack.enter_context(StandIn(gpus=gpus))
        ports = {"gpumon": free_port(), "nvitop-exporter": free_port()}
        commands = {
            "gpumon": our_command(folder / "ours", ports["gpumon"]),
            "nvitop-exporter": [str(peer()), "--port", str(ports["nvitop-exporter"])],
            "bare loop": [sys.executable, "-c", BARE_LOOP],
        }
        environment = {**os.environ, **nvml.environment()}
        running = {
            name: stack.enter_context(child(command, environment)) for name, command in commands.items()
        }
        for port in ports.values():
            wait_until_served(port)
        scrape_each_second(ports, WARM_UP_SECONDS)
        before = {name: cpu_seconds(process) for name, process in running.items()}
        begin = time.monotonic()
        sizes = scrape_each_second(ports, seconds)
        minutes = (time.monotonic() - begin) / 60
        return {
            name: {
                "cpu_seconds_per_minute": round((cpu_seconds(process) - before[name]) / minutes, 3),
                "rss_mib": round(process.memory_info().rss / 2**20, 1),
                "series": sizes.get(name, 0),
            }
            for name, process in running.items()
        }


def our_command(folder: Path, port: int, *more: str) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    places = ["--dir", str(folder), "--store", str(folder / "history.db")]
    return [
        sys.executable,
        "-m",
        "monitor.cli.main",
        "daemon",
        "--listen",
        f"127.0.0.1:{port}",
        *places,
        *more,
    ]


def peer() -> Path:
    """nvitop-exporter in an environment of its own, made once."""
    home = ROOT / "out" / "peers" / "nvitop-exporter"
    program = home / "bin" / "nvitop-exporter"
    if not program.exists():
        venv.create(home, with_pip=True, clear=True)
        subprocess.run([home / "bin" / "pip", "install", "--quiet", PEER], check=True)
    return program


@contextmanager
def child(command: list[str], environment: dict[str, str]) -> Iterator[psutil.Process]:
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(10)


def cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_served(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if fetch(port)[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit(f"nothing serves /metrics on port {port}")


def fetch(port: int, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", "/metrics", headers=headers or {})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, body


def scrape_each_second(ports: dict[str, int], seconds: float) -> dict[str, int]:
    """Keep-alive connections, as Prometheus has; returns the series of each at the end."""
    connections = {
        name: http.client.HTTPConnection("127.0.0.1", port, timeout=5) for name, port in ports.items()
    }
    due = time.monotonic()
    while time.monotonic() < due + seconds - (seconds % 1 or 1) + 1 and seconds > 0:
        for connection in connections.values():
            connection.request("GET", "/metrics", headers=ACCEPT)
            connection.getresponse().read()
        seconds -= 1
        due += 1
        time.sleep(max(0.0, due - time.monotonic()))
    for connection in connections.values():
        connection.close()
    return {name: count_series(fetch(port)[1]) for name, port in ports.items()}


def count_series(page: bytes) -> int:
    return sum(1 for line in page.splitlines() if line and not line.startswith(b"#"))


# ── One scrape ───────────────────────────────────────────────────────────────────────────────────


def scrape_latency(folder: Path, rounds: int = 300) -> dict[str, float]:
    """One client, one snapshot (the interval is long), so that every answer comes from the cache."""
    port = free_port()
    command = our_command(folder / "wide", port, "--source", "simulated", "--gpus", "44", "--interval", "30")
    with child(command, dict(os.environ)):
        wait_until_served(port)
        time.sleep(1)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        taken = sorted(timed_scrape(connection) for _ in range(rounds))
        connection.close()
        series = count_series(fetch(port)[1])
    return {
        "series": series,
        "p50_ms": round(statistics.median(taken) * 1e3, 3),
        "p99_ms": round(taken[int(rounds * 0.99)] * 1e3, 3),
    }


def timed_scrape(connection: http.client.HTTPConnection) -> float:
    begin = time.perf_counter()
    connection.request("GET", "/metrics", headers=ACCEPT)
    connection.getresponse().read()
    return time.perf_counter() - begin


# ── The report ───────────────────────────────────────────────────────────────────────────────────


def _result(
    args: argparse.Namespace, shared: dict[str, dict[str, float]], scrape: dict[str, float]
) -> dict[str, Any]:
    ours, theirs = shared["gpumon"], shared["nvitop-exporter"]
    ratio = ours["cpu_seconds_per_minute"] / max(theirs["cpu_seconds_per_minute"], 1e-9)
    return {
        "command": f"python -m tests.benchmarks.daemon --seconds {args.seconds:g} --gpus {args.gpus}",
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "gpus": args.gpus,
        "seconds": args.seconds,
        "programs": shared,
        "cpu_ratio_to_nvitop_exporter": round(ratio, 3),
        "scrape_from_cache": scrape,
        "targets_met": {
            "at most half the CPU of nvitop-exporter": ratio <= 0.5,
            "at most 50 MB resident": ours["rss_mib"] * 2**20 <= 50e6,
            "at least 2,000 series in the scrape": scrape["series"] >= SERIES,
            "scrape under 2 ms": scrape["p50_ms"] < 2.0,
        },
    }


def _table(result: dict[str, Any]) -> str:
    rows = [
        f"# Daemon: what watching {result['gpus']} GPUs costs",
        "",
        f"`{result['command']}` on {result['date']}, {result['machine']}.",
        "All read the NVML stand-in every second, both exporters are scraped every second.",
        "",
        "| program | CPU-s per minute | resident MiB | series |",
        "|---|---|---|---|",
    ]
    for name, figures in result["programs"].items():
        rows.append(
            f"| {name} | {figures['cpu_seconds_per_minute']} | {figures['rss_mib']} | {figures['series']} |"
        )
    scrape = result["scrape_from_cache"]
    rows += [
        "",
        f"CPU of gpumon over nvitop-exporter: {result['cpu_ratio_to_nvitop_exporter']}.",
        f"A scrape of {scrape['series']} series from cache: {scrape['p50_ms']} ms median, "
        f"{scrape['p99_ms']} ms p99.",
        "",
        *(f"- {'met' if met else 'NOT met'}: {target}" for target, met in result["targets_met"].items()),
        "",
    ]
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
