"""What reading a profiler trace costs, and whether its figures are right.

    python -m tests.benchmarks.trace [--events 200000]
    python -m tests.benchmarks.trace --hta [--traces FOLDER]      # or GPUMON_TRACES=FOLDER

The first reads a made-up trace, each time in a process of its own. `--hta` compares with Holistic Trace
Analysis on traces of real cards: temporal breakdown, idle time by category, overlap, queue. It is left out,
with the reason, when the folder or the package (`pip install HolisticTraceAnalysis`) is not there.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from monitor.traces import TraceReport, analyse, read
from tests.benchmarks import trace_made
from tests.benchmarks.trace_page import page

DOCS = Path(__file__).parents[2] / "docs/benchmarks"
EVENTS, ROUNDS = 200_000, 3
BUDGET_SECONDS, BUDGET_MB, BUDGET_POINTS = 2.0, 500, 1.0

PROBE = """
import json, sys, time
{work}
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(json.dumps([time.process_time(), peak / 1024]))
"""
"""CPU time, as the machine is shared; VmHWM, as ru_maxrss begins with the parent's memory."""
READ = "from monitor.traces import analyse, diagnose, read\n"
WORKS = {
    "gpumon: read": READ + "read(sys.argv[1])",
    "gpumon: read, analyse, diagnose": READ + "diagnose([analyse(read(sys.argv[1]))])",
    "json.load alone": "import gzip\nopened = gzip.open if sys.argv[1].endswith('gz') else open\n"
    "json.load(opened(sys.argv[1], 'rb'))",
}
HTA = "Holistic Trace Analysis: read"
HTA_WORK = (
    "import logging, warnings\nwarnings.filterwarnings('ignore')\nlogging.disable(logging.CRITICAL)\n"
    "from hta.trace_analysis import TraceAnalysis\nTraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir='/')"
)


def measured(work: str, file: Path) -> tuple[float, float]:
    """Median CPU seconds and largest MB of fresh processes, imports included."""
    command = [sys.executable, "-c", PROBE.format(work=work), str(file)]
    runs = [
        json.loads(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
        )
        for _ in range(ROUNDS)
    ]
    return statistics.median(run[0] for run in runs), max(run[1] for run in runs)


def speed(count: int) -> list[dict[str, Any]]:
    works = {**WORKS, HTA: HTA_WORK} if importlib.util.find_spec("hta") else WORKS
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for file in trace_made.write(Path(folder), count):
            for name, work in works.items():
                seconds, megabytes = measured(work, file)
                kind = "compressed" if file.suffix == ".gz" else "plain"
                size = file.stat().st_size / 1e6
                rows.append(
                    {"what": name, "file": kind, "mb": size, "seconds": seconds, "peak_mb": megabytes}
                )
    return rows


def ours(report: TraceReport) -> dict[str, float]:
    """The same keys as `trace_hta.figures`."""
    device = report.devices[0]
    result = {
        "idle": device.temporal.idle_ratio,
        "compute": device.temporal.compute_ratio,
        "non_compute": device.temporal.non_compute_ratio,
    }
    if device.communication:
        result["overlap"] = device.communication.overlap_ratio
    for stream in device.streams:
        parts = {
            "host_wait": stream.idle.host_wait_seconds,
            "kernel_wait": stream.idle.kernel_wait_seconds,
            "other": stream.idle.other_seconds,
        }
        whole = sum(parts.values())
        for name, part in parts.items():
            result[f"stream {stream.stream} {name}"] = part / whole if whole else 0.0
        if stream.queue:
            result[f"stream {stream.stream} queue mean"] = stream.queue.mean
            result[f"stream {stream.stream} queue max"] = float(stream.queue.max)
    return result


def hta(file: Path, *more: str) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.benchmarks.trace_hta", str(file), *more]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(folder: Path) -> list[dict[str, Any]]:
    rows = []
    for file in sorted(folder.glob("*.json*")):
        own, exact, shipped = ours(analyse(read(file))), hta(file), hta(file, "--as-shipped")
        for key in exact:
            found = own.get(key)
            rows.append(
                {
                    "trace": file.name,
                    "figure": key,
                    "gpumon": found,
                    "hta": exact[key],
                    "hta_as_shipped": shipped.get(key),
                    "off": None if found is None else difference(key, found, exact[key]),
                }
            )
    return rows


def difference(key: str, one: float, other: float) -> float:
    """Percentage points between two shares; per cent of a queue's length."""
    if "queue" not in key:
        return abs(one - other) * 100
    return abs(one - other) / max(abs(other), 1.0) * 100


def why_not(folder: str | None) -> str | None:
    """Why the comparison cannot be made, if so."""
    if folder is None:
        return "no folder with traces of real cards: --traces FOLDER or GPUMON_TRACES"
    if not any(Path(folder).glob("*.json*")):
        return "the folder has no traces in it"
    return None if importlib.util.find_spec("hta") else "HolisticTraceAnalysis is not installed"


def earlier() -> dict[str, Any]:
    path = DOCS / "trace.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.trace")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--hta", action="store_true", help="compare with Holistic Trace Analysis only")
    parser.add_argument("--traces", default=os.environ.get("GPUMON_TRACES"), metavar="FOLDER")
    args = parser.parse_args(arguments)
    result, now = earlier(), datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    if not args.hta or "speed" not in result:
        result |= {"date": now, "events": args.events, "rounds": ROUNDS, "speed": speed(args.events)}
    reason = why_not(args.traces)
    if reason is None:
        version = importlib.metadata.version("HolisticTraceAnalysis")
        result["comparison"] = {"date": now, "version": version, "rows": compare(Path(args.traces))}
    else:
        print(f"comparison skipped: {reason}")
    (DOCS / "trace.json").write_text(json.dumps(result, indent=2) + "\n")
    (DOCS / "trace.md").write_text(page(result))
    print(page(result))
    return 0 if within_budget(result) else 1


def within_budget(result: dict[str, Any]) -> bool:
    reading = [row for row in result["speed"] if row["what"] == "gpumon: read"]
    offs = [row["off"] for row in result.get("comparison", {}).get("rows", ())]
    return all(row["seconds"] < BUDGET_SECONDS and row["peak_mb"] < BUDGET_MB for row in reading) and all(
        off is not None and off <= BUDGET_POINTS for off in offs
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
