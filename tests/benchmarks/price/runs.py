"""One run of one program, bare or with a tool around it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests import device
from tests.benchmarks.price.catalog import Program

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
KEPT_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}
"""For bare and watched runs alike. Otherwise glibc gives memory back to the kernel or keeps it as the layout
of the heap happens to be: six short runs of `gnn` had between 387,000 and 584,000 page faults."""
TOOLS = ("bare", "gpumon", "sdk", "traceml", "wandb")
"""`sdk` is gpumon without the watching process and the report: to find a cost, not for the table."""


class Failed(Exception):
    """A program did not end well: half a run has no price."""


def run_pair(tool: str, program: Program, python: Path, *, quick: bool, swapped: bool) -> dict[str, Any]:
    """The program bare and with the tool at the same time, each on a core of its own."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    if swapped:
        cores.reverse()
    with ThreadPoolExecutor(2) as pool:
        made = [
            pool.submit(run, one, program, python, quick=quick, core=core)
            for one, core in zip(("bare", tool), cores, strict=True)
        ]
    return {"bare": made[0].result(), "watched": made[1].result()}


def run(tool: str, program: Program, python: Path, *, quick: bool, core: int) -> dict[str, Any]:
    """The kernel's figures of one run on one core."""
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory(dir=memory_folder()) as rings:
        output = Path(work) / "figures.json"
        account = Path(work) / "report.json"
        command = words(tool, program.words(quick), python, account)
        measure = [sys.executable, str(HERE / "measure.py"), str(output), str(core), *command]
        environment = on_device(program, surroundings(tool, work, rings))
        done = subprocess.run(measure, env=environment, cwd=work, capture_output=True, text=True, timeout=900)
        figures: dict[str, Any] = json.loads(output.read_text()) if output.exists() else {"code": None}
        if account.exists():
            figures["overhead_ratio"] = json.loads(account.read_text()).get("overhead_ratio")
    if figures["code"] != 0:
        raise Failed(f"{program.name} under {tool}: {(done.stdout + done.stderr).strip()[-400:]}")
    return figures


def words(tool: str, script: list[str], python: Path, account: Path) -> list[str]:
    """The command line; gpumon writes its own account to `account`."""
    if tool == "gpumon":
        front = [sys.executable, "-m", "monitor.cli.main", "run", "--json", str(account), "--"]
        return [*front, str(python), *script]
    if tool == "traceml":
        port = ["--aggregator-port", str(free_port())]
        front = [str(python.with_name("traceml")), "run", "--mode", "summary", *port]
        return [*front, script[0], "--args", *script[1:]]
    if tool == "wandb":
        return [str(python), str(HERE / "with_wandb.py"), *script]
    return [str(python), *script]


def surroundings(tool: str, work: str, rings: str) -> dict[str, str]:
    """No daemon, no history and no configuration of the user's is in the way, nor does any tool leave
    something behind. Modules are compiled once, as they are where they were installed."""
    dropped = ("GPUMON_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    found = kept | {
        "GPUMON_DIR": rings,
        "XDG_STATE_HOME": work,
        "XDG_CONFIG_HOME": work,
        "TMPDIR": work,
        "WANDB_SILENT": "true",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        **KEPT_MEMORY,
    }
    if tool == "sdk":
        found |= {"GPUMON_AUTO": "1", "PYTHONPATH": str(ROOT / "sdk" / "autostart")}
    if tool == "gpumon":
        found["PYTHONPATH"] = str(ROOT)
    return found


def on_device(program: Program, environment: dict[str, str]) -> dict[str, str]:
    """With the stand-in device, where the program is made for it."""
    if program.device is None:
        return environment
    given = device.environment(program.device)
    path = [str(device.RUNTIME), *filter(None, [environment.get("PYTHONPATH")])]
    return environment | given | {"PYTHONPATH": os.pathsep.join(path)}


def memory_folder() -> str | None:
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
