"""Daemons for two machines, real training processes and a real Prometheus with our rules."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from docs.tools.grafana_preview.answers import Prometheus, QueryError, Span
from grafana.build import HERE
from tests.conftest import PATIENCE, wait_for
from tests.integration.daemon.process import Daemon, clean_environment

SCENARIO = """
[[event]]
gpu = 1
effect = "throttle"
reason = "hw_thermal_slowdown"
[[event]]
at = 3
gpu = 2
effect = "xid"
code = 79
[[event]]
at = 3
gpu = 2
effect = "ecc"
corrected = 4
uncorrected = 1
remapped = 1
[[event]]
at = 8
gpu = 3
effect = "lose"
"""

TRAINER = """
import sys, time
from sdk import TrainingMonitor
name, data, compute, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])

def batches():
    while True:
        time.sleep(data)
        yield None

end, step = time.monotonic() + seconds, 0
with TrainingMonitor(name, batch_size=64) as monitor:
    for _ in monitor.loader(batches()):
        with monitor.phase("forward"):
            time.sleep(compute * 0.35)
        with monitor.phase("backward"):
            time.sleep(compute * 0.55)
        with monitor.phase("optimizer"):
            time.sleep(compute * 0.1)
        step += 1
        if step % 150 == 0:
            with monitor.phase("validate"):
                time.sleep(0.4)
        monitor.step(loss=2.0 / (1 + step / 100), accuracy=1 - 1 / (1 + step / 100))
        if time.monotonic() > end:
            break
"""

CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: {rules}
scrape_configs:
  - job_name: gpumon
    static_configs: {targets}
    relabel_configs:
      - {{source_labels: [node], target_label: instance}}
      - {{regex: node, action: labeldrop}}
"""

SLURM = {"SLURM_JOB_ID": "77"}
"""All that Slurm gives a task; nothing specific to gpumon is configured."""
NAIVE, FIXED, MANY = "resnet-naive", "resnet-fixed", "llm-ddp"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def child(command: list[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=clean_environment(**environment), stdout=out, stderr=out)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(20)


@contextmanager
def prometheus(
    program: str, folder: Path, nodes: Mapping[str, int | str], *options: str, config: str = ""
) -> Iterator[Prometheus]:
    """Scrapes every second; `instance` is the node's name, as service discovery would set it. A node is given
    by its port on this machine, or its address."""
    where = {name: f"127.0.0.1:{at}" if isinstance(at, int) else at for name, at in nodes.items()}
    targets = [{"targets": [address], "labels": {"node": name}} for name, address in where.items()]
    rules = [str(HERE / "rules" / name) for name in ("recording.yaml", "alerts.yaml")]
    text = CONFIG.format(targets=json.dumps(targets), rules=json.dumps(rules)) + config
    (folder / "prometheus.yml").write_text(text, encoding="utf-8")
    port = free_port()
    command = [
        program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
        f"--web.listen-address=127.0.0.1:{port}", "--enable-feature=exemplar-storage", *options,
    ]  # fmt: skip
    with child(command, folder / "prometheus.log"):
        wait_for(lambda: _ready(port))
        yield Prometheus(f"http://127.0.0.1:{port}")


def _ready(port: int, path: str = "/-/ready") -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def trainer(name: str, data: float, compute: float, seconds: float) -> list[str]:
    return [sys.executable, "-c", TRAINER, name, str(data), str(compute), str(seconds)]


@contextmanager
def central(folder: Path) -> Iterator[int]:
    """A VictoriaMetrics to write to; yields its port."""
    port = free_port()
    command = [
        "victoria-metrics",
        f"-storageDataPath={folder / 'central'}",
        f"-httpListenAddr=127.0.0.1:{port}",
    ]
    with child([*command, "-search.latencyOffset=0s"], folder / "central.log"):
        wait_for(lambda: _ready(port, "/health"))
        yield port


@contextmanager
def replay(home: Path, run: str, *options: str) -> Iterator[None]:
    command = [
        sys.executable,
        "-m",
        "tests.replay",
        "--dir",
        str(home / "rings"),
        "--run",
        run,
        "--seconds",
        "600",
    ]
    with child([*command, *options], home / f"{run}.log"):
        yield


Fleet = dict[str, dict[str, tuple[str, ...]]]
"""More machines with 8 GPUs: name → run → options of its replay."""


def _further(stack: ExitStack, folder: Path, fleet: Fleet) -> dict[str, int]:
    """Start them; returns their ports."""
    ports = {}
    for name, runs in fleet.items():
        home = folder / name
        (home / "rings").mkdir(parents=True)
        daemon = stack.enter_context(Daemon(home, "--source", "simulated", "--gpus", "8", interval="0.5"))
        ports[name] = daemon.port
        for run, options in runs.items():
            stack.enter_context(replay(home, run, *options))
    return ports


@contextmanager
def stage(
    program: str, folder: Path, seconds: float, fleet: Fleet | None = None, written_to: int | None = None
) -> Iterator[tuple[Prometheus, Span]]:
    """Everything started and watched for `seconds`; then the time range to look at. With `written_to`,
    everything is also remote-written to that port."""
    (folder / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    a, b = folder / "a", folder / "b"
    for one in (a, b):
        (one / "rings").mkdir(parents=True)
    simulated = ("--source", "simulated", "--gpus", "4")
    with ExitStack() as stack:
        first = stack.enter_context(Daemon(a, *simulated, interval="0.5"))
        second = stack.enter_context(
            Daemon(b, *simulated, "--scenario", str(folder / "scenario.toml"), interval="0.5")
        )
        nodes = {"gpu-node-1": first.port, "gpu-node-2": second.port, **_further(stack, folder, fleet or {})}
        url = f"http://127.0.0.1:{written_to}/api/v1/write"
        write = f"remote_write: [{{url: '{url}'}}]\n" if written_to else ""
        asked = stack.enter_context(prometheus(program, folder, nodes, config=write))
        start = time.time()
        for name, data, lasts in ((NAIVE, 0.016, 600.0), (FIXED, 0.001, 0.7 * seconds)):
            home = {"GPUMON_DIR": str(a / "rings"), "GPUMON_RUN_ID": name, "PYTHONPATH": os.getcwd()} | SLURM
            stack.enter_context(child(trainer(name, data, 0.012, lasts), folder / f"{name}.log", **home))
        stack.enter_context(replay(b, MANY, "--ranks", "3", "--gpus", "3", "--straggler", "2"))
        wait_for(lambda: _seen(asked), every=0.5)
        time.sleep(max(0.0, start + seconds - time.time()))
        yield asked, Span(start, time.time(), 1.0)


def _seen(asked: Prometheus) -> bool:
    """Whether the slowest things are there: findings with a gain, and ranks to compare."""
    try:
        gains = asked.instant("gpumon:run_best_finding:speedup", time.time())
        skew = asked.instant("gpumon:rank_skew:ratio", time.time())
    except (QueryError, OSError):
        return False
    return any(one["metric"]["run"] == NAIVE for one in gains) and len(skew) >= 4
