"""What watching costs a training loop: ours beside a bare clock, torch.profiler, TraceML and W&B.

``python -m tests.benchmarks.sdk`` (or `make bench`; about 12 min, and with ``--minutes 11`` it stops in time
and the next call goes on). Every tool runs in processes of its own; within one, bare and watched blocks
alternate. Peers are installed once into a folder of their own under `out/`; one
that cannot be installed is left out and named.
"""

from __future__ import annotations

import argparse
import compileall
import json
import math
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
LOOP = Path(__file__).with_name("loop.py")
REPORT = ROOT / "docs" / "benchmarks"
PEERS = {"traceml_auto": "traceml-ai", "traceml_manual": "traceml-ai", "wandb": "wandb"}
OURS = ("laps", "phases", "auto")
PLAIN = ("laps_plain", "auto_plain")
"""Ours where the C core could not be built."""
TOOLS = ("perf_counter", *OURS, *PLAIN, "profiler", "traceml_manual", "traceml_auto", "wandb")
ROUNDS = 3
"""Processes of each tool: from one to the next the same code differs by some microseconds."""
SIZES = ("1", "5", "20")
"""For `OURS`; the others run at the first alone."""
ROWS = ROOT / "out" / "sdk.json"
"""What is measured so far, tool by tool; gone when the page is written."""
LONGEST_S = 60.0
"""One process of a tool takes less."""
BEFORE = (
    "until 2026-11-18 each process compiled them anew where the shell had switched bytecode files off; the "
    "means then, on a busy machine, were 17 to 20 µs (`laps`) and 35 to 45 µs (`auto`) at 1 ms."
)
TARGETS = {"laps": 10.0, "auto": 25.0}


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.sdk")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop in time; the next call goes on")
    end = time.monotonic() + 60 * parser.parse_args(list(arguments)).minutes
    python = peers_python()
    compileall.compile_dir(ROOT / "sdk", quiet=2)  # as installing does
    rows: dict[str, list[dict[str, Any] | None]] = json.loads(ROWS.read_text()) if ROWS.exists() else {}
    for number in range(ROUNDS):
        for tool in TOOLS:
            if len(rows.setdefault(tool, [])) > number:
                continue
            if time.monotonic() + LONGEST_S > end:
                return 0
            rows[tool].append(run(tool, python))
            ROWS.parent.mkdir(exist_ok=True)
            ROWS.write_text(json.dumps(rows))
    write(report({tool: [one for one in found if one] for tool, found in rows.items()}))
    ROWS.unlink()
    return 0


def report(rows: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    tools = {tool: combine(found) for tool, found in rows.items() if found}
    return {
        "command": "python -m tests.benchmarks.sdk",
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "load": round(os.getloadavg()[0], 1),
        "rounds": ROUNDS,
        "tools": tools,
        "absent": [tool for tool, found in rows.items() if not found],
        "import": import_cost(),
        "ratio_to_traceml": ratios(tools),
    }


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


def run(tool: str, python: Path | None) -> dict[str, Any] | None:
    """One process; None when it cannot run here."""
    if tool in PEERS and python is None:
        return None
    interpreter = str(python) if tool in PEERS and python else sys.executable
    with tempfile.TemporaryDirectory(dir=memory_folder()) as rings, tempfile.TemporaryDirectory() as work:
        env = {
            **os.environ,
            "GPUMON_DIR": rings,
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "",
            "OMP_NUM_THREADS": "1",
            "TMPDIR": work,
            "GPUMON_PURE": "1" if tool in PLAIN else "",
        }
        done = subprocess.run(
            command_of(tool, interpreter), env=env, cwd=work, capture_output=True, text=True, timeout=600
        )
    for line in done.stdout.splitlines():
        if "RESULT " in line:
            found: dict[str, Any] = json.loads(line.partition("RESULT ")[2])
            return found
    print(f"{tool} does not run here: {done.stderr.strip()[-300:]}", file=sys.stderr)
    return None


def memory_folder() -> str | None:
    """Rings belong into shared memory; elsewhere a file system's own work would be measured."""
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


def command_of(tool: str, python: str) -> list[str]:
    if tool.startswith("traceml"):
        port = ["--aggregator-port", str(free_port())]
        front = [str(Path(python).with_name("traceml")), "run", "--mode", "summary", *port]
        return [*front, str(LOOP), "--args", tool, SIZES[0]]
    sizes = SIZES if tool in OURS else SIZES[:1]
    return [python, str(LOOP), tool.removesuffix("_plain"), ",".join(sizes)]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def combine(found: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Per step size: the mean of the rounds for means, their median for what is usual. The error is that of
    the rounds, or of the blocks within them if that is more."""
    combined = {}
    for size, first in found[0].items():
        columns = {key: [one[size][key] for one in found] for key in first}
        means = {key: statistics.fmean(columns[key]) for key in ("mean_us", "own_us") if key in first}
        values = {key: statistics.median(column) for key, column in columns.items()} | means
        errors = [values["error_us"]]
        if len(found) > 1:
            errors.append(statistics.stdev(columns["mean_us"]))
        values["error_us"] = max(errors) / len(found) ** 0.5
        combined[size] = {key: round(value, 1) for key, value in values.items()}
    return combined


def ratios(tools: dict[str, Any]) -> dict[str, float]:
    """TraceML's mean at 1 ms over ours; what is below the resolution counts as 1 µs."""
    theirs = {"laps": "traceml_manual", "phases": "traceml_manual", "auto": "traceml_auto"}
    return {
        tool: round(tools[theirs[tool]]["1"]["mean_us"] / max(1.0, tools[tool]["1"]["mean_us"]), 1)
        for tool in OURS
        if tool in tools and theirs[tool] in tools
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
        f"`{report['command']}`, {report['date']}, {report['machine']}, load {report['load']}; "
        f"{report['rounds']} processes a tool, in each short blocks that take turns with bare ones. "
        "Microseconds a step.",
        "",
        "**Mean**: added CPU of the whole process over all steps from the first watched one on, ± its "
        "standard error: with sampled steps, looking them up, and whatever else comes once or now and then. "
        "**Usual**: added CPU of the thread in a usual step (difference of lower quartiles), the estimator "
        "of earlier versions of this page.",
        "",
        "| tool | step | mean | usual | usual, wall time |",
        "|---|---|---|---|---|",
    ]
    for tool, sizes in report["tools"].items():
        for size, found in sizes.items():
            text.append(
                f"| {tool} | {size} ms | {found['mean_us']:.1f} ± {found['error_us']:.1f} "
                f"| {found['usual_us']:.1f} | {found['usual_wall_us']:.1f} |"
            )
    text += ["", "`…_plain` is the Python core, for machines where the C one cannot be built."]
    text += ["Our modules are compiled before, as by an installation; " + BEFORE]
    own = [
        f"`{tool}` {report['tools'][tool]['1']['own_us']:.1f} µs" for tool in OURS if tool in report["tools"]
    ]
    text += [f"By our recorder's own account a step of 1 ms costs {', '.join(own)}."]
    text += ["", f"`import sdk`: {report['import']['milliseconds']} ms, {report['import']['megabytes']} MB."]
    for tool, ratio in report["ratio_to_traceml"].items():
        text.append(f"TraceML costs {ratio} times as much as `{tool}` (mean, 1 ms step).")
    for tool, target in TARGETS.items():
        if tool in report["tools"]:
            found = report["tools"][tool]["1"]
            text.append(
                f"Target for `{tool}`: a mean of at most {target:.0f} µs; measured {found['mean_us']:.1f} µs "
                f"(usual: {found['usual_us']:.1f})."
            )
    if report["absent"]:
        text.append(f"Not run here: {', '.join(report['absent'])}.")
    return text
