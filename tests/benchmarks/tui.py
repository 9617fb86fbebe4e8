"""What looking costs: our screen and nvitop's, in terminals of 160×50, on the same stand-in.

8 GPUs whose readings change every second, 50 processes on them, 4 training runs. Both draw once a
second. nvitop collects by itself, so our screen is also measured that way ("own readings"); beside a
daemon, which is the usual way, the daemon collects and the screen only draws. The turns are taken
one after the other and repeated. Then: the time from the start to the first picture with readings, and from
a key to the first byte of the answer.

    python -m tests.benchmarks.tui [--seconds 30] [--turns 2]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.benchmarks.daemon import child, free_port, our_command, wait_until_served
from tests.nvml.standin import Proc, StandIn
from tests.tui.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "benchmarks"
PEER = "nvitop==1.7.2"
SIZE = (160, 50)
GPUS, PROCESSES, RUNS = 8, 50, 4
SETTLE_SECONDS = 6.0
STARTS, KEYS = 5, 20
MOST_CPU, MOST_START, MOST_KEY, MOST_TRAFFIC = 1.2, 0.5, 0.1, 1.5

TRAINER = """
import sys, time
from sdk import TrainingMonitor
with TrainingMonitor(sys.argv[1], batch_size=64) as monitor:
    while True:
        for name, seconds in (("data", 0.05), ("forward", 0.02), ("backward", 0.03)):
            with monitor.phase(name):
                time.sleep(seconds)
        monitor.step()
"""


def main() -> int:
    args = _arguments()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        place = stack.enter_context(scene(Path(folder)))
        turns = [measure(place, args.seconds) for _ in range(args.turns)]
        starts = {name: first_screens(name, place) for name in place.commands}
        keys = {name: key_answers(name, place) for name in place.ours}
    result = _result(args, turns, starts, keys)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "tui.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    (OUT / "tui.md").write_text(_table(result), encoding="utf-8")
    print(_table(result))
    return 0 if all(result["targets_met"].values()) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--turns", type=int, default=2)
    return parser.parse_known_args()[0]


# ── The scene ────────────────────────────────────────────────────────────────────────────────────


class Place:
    """What runs while the screens are measured."""

    def __init__(self, environment: dict[str, str], port: int) -> None:
        self.environment = environment
        ours = [sys.executable, "-m", "monitor.cli.main", "tui"]
        self.ours = {
            "gpumon tui": [*ours, "--connect", f"http://127.0.0.1:{port}"],
            "gpumon tui, own readings": [*ours, "--source", "nvml"],
        }
        self.commands = {**self.ours, "nvitop": [str(peer()), "--monitor", "full", "--interval", "1"]}


@contextmanager
def scene(folder: Path) -> Iterator[Place]:
    """Stand-in, processes, runs and a daemon; the readings change once a second."""
    with ExitStack() as stack:
        nvml = stack.enter_context(StandIn(gpus=GPUS))
        rings, port = folder / "rings", free_port()
        rings.mkdir()
        environment = {
            **os.environ,
            **nvml.environment(),
            "GPUMON_DIR": str(rings),
            "XDG_CONFIG_HOME": str(folder),
        }
        environment.pop("GPUMON_CONNECT", None)
        pids = [stack.enter_context(child(command, environment)).pid for command in _programs()]
        for index in range(GPUS):
            nvml.gpu(index).processes(
                *(Proc(pid, memory=(2 + n) << 30, sm=11 * n) for n, pid in enumerate(pids[index::GPUS]))
            )
        stack.enter_context(_changing(nvml))
        daemon = [
            *our_command(folder / "daemon", port),
            "--dir",
            str(rings),
            "--socket",
            "none",
            "--source",
            "nvml",
        ]
        stack.enter_context(child(daemon, environment))
        wait_until_served(port)
        yield Place(environment, port)


def _programs() -> Iterator[list[str]]:
    """Four trainers, and sleepers up to fifty."""
    for number in range(RUNS):
        yield [sys.executable, "-c", TRAINER, f"train-{number}"]
    for _ in range(PROCESSES - RUNS):
        yield ["sleep", "100000"]


@contextmanager
def _changing(nvml: StandIn) -> Iterator[None]:
    stop = threading.Event()

    def work() -> None:
        tick = 0
        while not stop.wait(1.0):
            tick += 1
            for index in range(GPUS):
                use = int(50 + 45 * math.sin(tick / 7 + index))
                nvml.gpu(index).set(utilization=use, temperature=40 + use // 3, power=(90 + 6 * use) * 1000)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(5)


def peer() -> Path:
    """nvitop in an environment of its own, made once."""
    home = ROOT / "out" / "peers" / "nvitop"
    program = home / "bin" / "nvitop"
    if not program.exists():
        venv.create(home, with_pip=True, clear=True)
        subprocess.run([home / "bin" / "pip", "install", "--quiet", PEER], check=True)
    return program


# ── Measuring ────────────────────────────────────────────────────────────────────────────────────


def measure(place: Place, seconds: float) -> dict[str, dict[str, float]]:
    """CPU-s and tty kB a minute of each screen, one after the other."""
    found = {}
    for name, command in place.commands.items():
        with Terminal(command, SIZE, place.environment) as screen:
            time.sleep(SETTLE_SECONDS)
            cpu, received, begin = screen.cpu_seconds(), screen.received, time.monotonic()
            time.sleep(seconds)
            minutes = (time.monotonic() - begin) / 60
            found[name] = {
                "cpu_seconds_per_minute": (screen.cpu_seconds() - cpu) / minutes,
                "tty_kb_per_minute": (screen.received - received) / 1000 / minutes,
                "rss_mib": screen.process.memory_info().rss / 2**20,
            }
    return found


def first_screens(name: str, place: Place) -> list[float]:
    """Seconds from the start of the process until a GPU's power limit stands on the screen."""
    times = []
    for _ in range(STARTS):
        screen = Terminal(place.commands[name], SIZE, place.environment)
        screen.watch_for("/ 400W" if name == "nvitop" else "/400 W")
        with screen:
            deadline = time.monotonic() + 20
            while screen.first_text is None and time.monotonic() < deadline:
                time.sleep(0.01)
            times.append(screen.first_text or math.inf)
    return times


def key_answers(name: str, place: Place) -> list[float]:
    """Seconds from a key that moves the selection until the screen begins to change."""
    times = []
    with Terminal(place.commands[name], SIZE, place.environment) as screen:
        time.sleep(SETTLE_SECONDS)
        for number in range(KEYS):
            before, began = screen.received, time.monotonic()
            screen.press(b"jk"[number % 2 : number % 2 + 1])
            while screen.received == before and time.monotonic() < began + 20:
                time.sleep(0.001)
            times.append(time.monotonic() - began)
            time.sleep(0.3)
    return times


def _result(
    args: argparse.Namespace,
    turns: list[dict[str, Any]],
    starts: dict[str, list[float]],
    keys: dict[str, list[float]],
) -> dict[str, Any]:
    screens = {
        name: {key: round(statistics.median(turn[name][key] for turn in turns), 2) for key in turns[0][name]}
        for name in turns[0]
    }
    ratio = screens["gpumon tui"]["cpu_seconds_per_minute"] / screens["nvitop"]["cpu_seconds_per_minute"]
    first = {name: round(statistics.median(times), 2) for name, times in starts.items()}
    answer = {name: round(statistics.median(times), 3) for name, times in keys.items()}
    traffic = screens["gpumon tui"]["tty_kb_per_minute"] / screens["nvitop"]["tty_kb_per_minute"]
    return {
        "command": "python -m tests.benchmarks.tui",
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "seconds": args.seconds,
        "turns": turns,
        "screens": screens,
        "first_screen_seconds": first,
        "key_seconds": answer,
        "traffic_ratio_to_nvitop": round(traffic, 2),
        "cpu_ratio_to_nvitop": round(ratio, 2),
        "load_average": round(os.getloadavg()[0], 1),
        "targets_met": {
            "cpu at most 1.2 × nvitop": ratio <= MOST_CPU,
            "first screen under 0.5 s": first["gpumon tui"] < MOST_START,
            "keys answered in 0.1 s": max(answer.values()) < MOST_KEY,
            "terminal traffic at most 1.5 × nvitop": traffic <= MOST_TRAFFIC,
        },
    }


def _table(result: dict[str, Any]) -> str:
    lines = [
        "# The screen: what it costs",
        "",
        f"`{result['command']}` on {result['date']}, {result['machine']}, load average "
        f"{result['load_average']}. 160×50, {GPUS} GPUs (NVML stand-in), "
        f"{PROCESSES} processes, {RUNS} runs, one picture a second, {result['seconds']:.0f} s a turn, "
        f"median of {len(result['turns'])} turns.",
        "",
        "| screen | CPU-s/min | tty kB/min | RSS MiB | first screen s | key s |",
        "|---|---|---|---|---|---|",
    ]
    for name, figures in result["screens"].items():
        first = result["first_screen_seconds"].get(name, "")
        key = result["key_seconds"].get(name, "")
        cells = (
            figures["cpu_seconds_per_minute"],
            figures["tty_kb_per_minute"],
            figures["rss_mib"],
            first,
            key,
        )
        lines.append(f"| {name} | " + " | ".join(str(cell) for cell in cells) + " |")
    lines += [
        "",
        f"CPU of `gpumon tui` beside a daemon: ×{result['cpu_ratio_to_nvitop']} of nvitop's, "
        f"which collects by itself. Terminal traffic: ×{result['traffic_ratio_to_nvitop']}.",
    ]
    lines += [f"- {'met' if met else 'NOT met'}: {name}" for name, met in result["targets_met"].items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
