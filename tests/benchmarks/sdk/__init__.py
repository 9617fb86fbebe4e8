"""What watching costs a training loop: ours beside a bare clock, torch.profiler, TraceML and W&B.

``python -m tests.benchmarks.sdk`` (or `make bench`). Every way runs in processes of its own; within one,
bare and watched blocks alternate. Peers are installed once into a folder of their own under `out/`; one
that cannot be installed is left out and named.
"""

from __future__ import annotations

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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
LOOP = Path(__file__).with_name("loop.py")
REPORT = ROOT / "docs" / "benchmarks"
PEERS = {"traceml_auto": "traceml-ai", "traceml_manual": "traceml-ai", "wandb": "wandb"}
OURS = ("laps", "phases", "auto")
PLAIN = ("laps_plain", "auto_plain")
"""Ours where the C core could not be built; at one step size."""
WAYS = ("perf_counter", *OURS, *PLAIN, "profiler", "traceml_manual", "traceml_auto", "wandb")
ROUNDS = 5
"""Processes of each way: from one to the next the same code differs by some microseconds."""
SIZES = ("1", "5", "20")
TARGETS = {"laps": 10.0, "auto": 25.0}


def main() -> int:
    python = peers_python()
    rows: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way in WAYS:
            found = run(way, python)
            if found:
                rows[way].append(found)
    report = {
        "command": "python -m tests.benchmarks.sdk",
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "load": round(os.getloadavg()[0], 1),
        "rounds": ROUNDS,
        "ways": {way: combine(found) for way, found in rows.items() if found},
        "absent": [way for way, found in rows.items() if not found],
        "import": import_cost(),
    }
    report["ratio_to_traceml"] = ratios(report["ways"])
    write(report)
    return 0


def peers_python() -> Path | None:
    """A Python that has the peers, and everything we have; None when they cannot be installed."""
    given = os.environ.get("GPUMON_PEERS_PYTHON")
    if given:
        return Path(given)
    folder = ROOT / "out" / "peers"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        library = next(folder.glob("lib/python*/site-packages"))
        ours = [path for path in sys.path if path.endswith("site-packages")]
        (library / "ours.pth").write_text("\n".join(ours) + "\n")
        wanted = sorted(set(PEERS.values()))
        command = [str(python), "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), *wanted]
        if subprocess.run(command, capture_output=True, timeout=900).returncode:
            print("peers cannot be installed here; they are left out", file=sys.stderr)
            return None
    return python


def run(way: str, python: Path | None) -> dict[str, Any] | None:
    """One process; None when it cannot run here."""
    if way in PEERS and python is None:
        return None
    interpreter = str(python) if way in PEERS and python else sys.executable
    with tempfile.TemporaryDirectory(dir=memory_folder()) as rings, tempfile.TemporaryDirectory() as work:
        env = {
            **os.environ,
            "GPUMON_DIR": rings,
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
            "TMPDIR": work,
            "GPUMON_PURE": "1" if way in PLAIN else "",
        }
        done = subprocess.run(
            command_of(way, interpreter), env=env, cwd=work, capture_output=True, text=True, timeout=600
        )
    for line in done.stdout.splitlines():
        if "RESULT " in line:
            found: dict[str, Any] = json.loads(line.partition("RESULT ")[2])
            return found
    print(f"{way} does not run here: {done.stderr.strip()[-300:]}", file=sys.stderr)
    return None


def memory_folder() -> str | None:
    """Rings belong into shared memory; elsewhere a file system's own work would be measured."""
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


def command_of(way: str, python: str) -> list[str]:
    if way.startswith("traceml"):
        port = ["--aggregator-port", str(free_port())]
        front = [str(Path(python).with_name("traceml")), "run", "--mode", "summary", *port]
        return [*front, str(LOOP), "--args", way, ",".join(SIZES)]
    sizes = SIZES[:1] if way in PLAIN else SIZES
    return [python, str(LOOP), way.removesuffix("_plain"), ",".join(sizes)]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def combine(found: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The median of the rounds, per step size, and its error: from the rounds, or from the blocks within
    them if that is more."""
    combined = {}
    for size, first in found[0].items():
        values = {key: round(statistics.median(one[size][key] for one in found), 1) for key in first}
        added = [one[size]["added_cpu_us"] for one in found]
        if len(added) > 1:
            within = values["error_us"] / len(added) ** 0.5
            values["error_us"] = round(max(within, 1.25 * statistics.stdev(added) / len(added) ** 0.5), 1)
        combined[size] = values
    return combined


def ratios(ways: dict[str, Any]) -> dict[str, float]:
    """TraceML's added CPU at 1 ms over ours; what is below the resolution counts as 1 µs."""
    if "traceml_auto" not in ways:
        return {}
    theirs = {"laps": "traceml_manual", "phases": "traceml_manual", "auto": "traceml_auto"}
    return {
        way: round(ways[theirs[way]]["1"]["added_cpu_us"] / max(1.0, ways[way]["1"]["added_cpu_us"]), 1)
        for way in OURS
        if way in ways and theirs[way] in ways
    }


def import_cost() -> dict[str, float]:
    """`import sdk` in a fresh Python with bytecode in place: the best of several."""
    code = (
        "import time; rss = lambda: int(open('/proc/self/statm').read().split()[1]) * 4096; b = rss();"
        "t = time.perf_counter(); from sdk import TrainingMonitor; t = time.perf_counter() - t;"
        "print(t * 1e3, (rss() - b) / 2**20)"
    )
    with tempfile.TemporaryDirectory() as cache:
        env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTHONPYCACHEPREFIX": cache,
            "PYTHONDONTWRITEBYTECODE": "",
        }
        outs = [
            subprocess.run([sys.executable, "-S", "-c", code], env=env, capture_output=True, text=True).stdout
            for _ in range(8)
        ]
    rows = [tuple(map(float, out.split())) for out in outs]
    return {
        "milliseconds": round(min(row[0] for row in rows), 1),
        "megabytes": round(min(row[1] for row in rows), 1),
    }


def write(report: dict[str, Any]) -> None:
    REPORT.mkdir(parents=True, exist_ok=True)
    (REPORT / "sdk.json").write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    (REPORT / "sdk.md").write_text("\n".join(lines(report)) + "\n")
    print("\n".join(lines(report)))


def lines(report: dict[str, Any]) -> list[str]:
    text = [
        "# What watching costs a step",
        "",
        f"`{report['command']}`, {report['date']}, {report['machine']}, load {report['load']}; median of "
        f"{report['rounds']} processes a way, in each short blocks that take turns with bare ones. Added "
        "thread CPU ± its error / wall time of a usual step (the lower quartile of a block), in µs.",
        "",
        "| way | 1 ms step | 5 ms step | 20 ms step |",
        "|---|---|---|---|",
    ]
    for way, sizes in report["ways"].items():
        cells = [
            f"{sizes[s]['added_cpu_us']:.1f} ± {sizes[s]['error_us']:.1f} / {sizes[s]['added_wall_us']:.1f}"
            if s in sizes
            else ""
            for s in SIZES
        ]
        text.append(f"| {way} | {' | '.join(cells)} |")
    text += [
        "",
        "`…_plain` is the Python core, for machines where the C one cannot be built. What a tool does only "
        "now and then is in no row; by our recorder's own account, with all of that in it (adding up, "
        "readings once a second, close looks at a few steps), a 1 ms step costs "
        + ", ".join(f"`{way}` {report['ways'][way]['1']['own_us']:.1f} µs" for way in OURS)
        + f". The configuration probe, once: {report['ways']['laps']['1']['probe_us']:.0f} µs.",
    ]
    text += ["", f"`import sdk`: {report['import']['milliseconds']} ms, {report['import']['megabytes']} MB."]
    for way, ratio in report["ratio_to_traceml"].items():
        text.append(f"TraceML costs {ratio} times as much as `{way}` (thread CPU, 1 ms step).")
    for way, target in TARGETS.items():
        if way in report["ways"]:
            found = report["ways"][way]["1"]["added_cpu_us"]
            text.append(f"Target for `{way}`: ≤ {target:.0f} µs; measured {found:.1f} µs.")
    if report["absent"]:
        text.append(f"Not run here: {', '.join(report['absent'])}.")
    return text
