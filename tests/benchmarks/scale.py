"""Many machines: N daemons with 8 simulated GPUs and replayed runs, one Prometheus, one VictoriaMetrics.

Measured at 1, 8 and 64 ranks a node: series and scrape time of a node, CPU of a daemon, of Prometheus (with
all rules) and of VictoriaMetrics (remote write). The last table carries it to 1,000 nodes on paper.

    python -m tests.benchmarks.scale [--nodes 8] [--ranks 1,8,64] [--seconds 25]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from docs.tools.grafana_preview.answers import Prometheus
from tests.benchmarks.daemon import cpu_seconds, fetch, wait_until_served
from tests.benchmarks.scale_report import table
from tests.integration.grafana.stage import child, free_port

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "benchmarks"
GPUS = 8
EVERY = 5
"""Seconds between two scrapes in this test; production uses 15."""
WARM_UP = 14.0
GZIP = {"Accept": "application/openmetrics-text;version=1.0.0", "Accept-Encoding": "gzip"}
CONFIG = """
global: {{scrape_interval: {every}s, scrape_timeout: {every}s, evaluation_interval: {every}s}}
rule_files: {rules}
scrape_configs:
  - job_name: gpumon
    static_configs: [{{targets: {targets}}}]
  - job_name: prometheus
    static_configs: [{{targets: ["127.0.0.1:{own}"]}}]
remote_write:
  - url: http://127.0.0.1:{central}/api/v1/write
"""


@dataclass(frozen=True, slots=True)
class Level:
    """What was measured at one number of ranks a node."""

    ranks: int
    nodes: int
    series_per_node: int
    page_bytes_gzip: int
    scrape_ms: float
    scrape_ms_worst: float
    daemon_cpu_percent: float
    daemon_rss_mib: float
    prometheus_cpu_percent: float
    prometheus_rss_mib: float
    rules_ms: float
    central_cpu_percent: float
    central_rss_mib: float
    central_bytes_per_sample: float | None
    series_scraped: int
    series_central: int
    samples_lost: int
    targets_down: int
    recorded_per_node: int
    """Series the recording rules add."""


def main() -> int:
    args = _arguments()
    programs = {name: shutil.which(name) for name in ("prometheus", "victoria-metrics")}
    missing = [name for name, found in programs.items() if found is None]
    if missing:
        print(
            f"not installed: {', '.join(missing)} (Debian: apt-get install {' '.join(missing)})",
            file=sys.stderr,
        )
        return 1
    levels = [measure(ranks, args.nodes, args.seconds) for ranks in args.ranks]
    options = f"--nodes {args.nodes} --ranks {','.join(map(str, args.ranks))} --seconds {args.seconds:g}"
    result = {
        "command": f"python -m tests.benchmarks.scale {options}",
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "gpus_per_node": GPUS,
        "scrape_seconds": EVERY,
        "levels": [asdict(level) for level in levels],
    }
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "scale.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    (OUT / "scale.md").write_text(table(result), encoding="utf-8")
    print(table(result))
    return 0 if all(sound(level) for level in levels) else 1


def sound(level: Level) -> bool:
    """Every target answered, nothing was lost on the way, and the centre has what was scraped."""
    arrived = level.series_central >= 0.98 * level.series_scraped
    return not level.targets_down and not level.samples_lost and arrived


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.scale", description=__doc__)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument(
        "--ranks", type=lambda text: [int(one) for one in text.split(",")], default=[1, 8, 64]
    )
    parser.add_argument("--seconds", type=float, default=25.0)
    return parser.parse_known_args()[0]


# ── One level ────────────────────────────────────────────────────────────────────────────────────


def measure(ranks: int, nodes: int, seconds: float) -> Level:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        daemons = {free_port(): folder / f"node{number}" for number in range(nodes)}
        running = [stack.enter_context(_daemon(port, home)) for port, home in daemons.items()]
        for port in daemons:
            wait_until_served(port)
        for home in daemons.values():
            stack.enter_context(_replay(home, ranks, WARM_UP + seconds + 60))
        central_port, central = stack.enter_context(_central(folder))
        asked, collector = stack.enter_context(_prometheus(folder, list(daemons), central_port))
        time.sleep(WARM_UP)
        everybody = [*running, collector, central]
        before = [cpu_seconds(one) for one in everybody]
        begin = time.monotonic()
        time.sleep(seconds)
        wall = time.monotonic() - begin
        used = [100 * (cpu_seconds(one) - first) / wall for one, first in zip(everybody, before, strict=True)]
        return _level(
            ranks,
            nodes,
            asked,
            Prometheus(f"http://127.0.0.1:{central_port}"),
            everybody,
            used,
            list(daemons),
        )


def _level(
    ranks: int,
    nodes: int,
    asked: Prometheus,
    central: Prometheus,
    everybody: list[psutil.Process],
    used: list[float],
    ports: list[int],
) -> Level:
    rss = [one.memory_info().rss / 2**20 for one in everybody]
    took = [
        1000 * value for value in values(asked, f'scrape_duration_seconds{{job="gpumon"}}[{20 * EVERY}s]')
    ]
    size = statistics.mean(len(fetch(port, GZIP)[1]) for port in ports)
    here = values(asked, 'sum(scrape_samples_scraped{job="gpumon"})')
    there = values(central, 'count({job="gpumon", __name__=~"gpumon_.*|process_.*"})')
    counters = (f"prometheus_remote_storage_samples_{how}_total" for how in ("failed", "dropped"))
    lost = values(asked, f"sum({' + '.join(counters)})")
    rules = values(asked, "sum(prometheus_rule_group_last_duration_seconds)")
    return Level(
        ranks=ranks,
        nodes=nodes,
        series_per_node=round(here[0] / nodes),
        page_bytes_gzip=round(size),
        scrape_ms=round(statistics.median(took), 2),
        scrape_ms_worst=round(max(took), 2),
        daemon_cpu_percent=round(statistics.mean(used[:nodes]), 2),
        daemon_rss_mib=round(statistics.mean(rss[:nodes]), 1),
        prometheus_cpu_percent=round(used[nodes], 2),
        prometheus_rss_mib=round(rss[nodes], 1),
        rules_ms=round(1000 * rules[0], 2),
        central_cpu_percent=round(used[nodes + 1], 2),
        central_rss_mib=round(rss[nodes + 1], 1),
        central_bytes_per_sample=bytes_per_sample(central),
        series_scraped=round(here[0]),
        series_central=round(there[0]) if there else 0,
        samples_lost=round(lost[0]) if lost else 0,
        recorded_per_node=round(sum(values(asked, 'count({__name__=~"gpumon:.*"})')) / nodes),
        targets_down=nodes - round(values(asked, 'sum(up{job="gpumon"})')[0]),
    )


def values(asked: Prometheus, expr: str) -> list[float]:
    """All values of an instant query; of all points when it asks for a range."""
    found = asked.instant(expr, time.time())
    return [float(value) for one in found for _, value in (one.get("values") or [one["value"]])]


def bytes_per_sample(central: Prometheus) -> float | None:
    """On disk, of VictoriaMetrics' own account; None while it has nothing on disk yet."""
    text = fetch(int(central.url.rpartition(":")[2]))[1].decode()
    sums = {"vm_rows": 0.0, "vm_data_size_bytes": 0.0}
    for line in text.splitlines():
        name, _, rest = line.partition("{")
        if name in sums and 'type="storage/' in rest:
            sums[name] += float(line.rpartition(" ")[2])
    return round(sums["vm_data_size_bytes"] / sums["vm_rows"], 2) if sums["vm_rows"] else None


# ── The parts ────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _daemon(port: int, home: Path) -> Iterator[psutil.Process]:
    home.mkdir()
    options = ["--listen", f"127.0.0.1:{port}", "--dir", str(home), "--store", str(home / "history.db")]
    command = [
        sys.executable,
        "-m",
        "monitor.cli.main",
        "daemon",
        "--source",
        "simulated",
        "--gpus",
        str(GPUS),
        *options,
    ]
    with child(command, home / "daemon.log") as process:
        yield psutil.Process(process.pid)


@contextmanager
def _replay(home: Path, ranks: int, seconds: float) -> Iterator[None]:
    options = [
        "--run",
        f"train-{home.name}",
        "--ranks",
        str(ranks),
        "--gpus",
        str(GPUS),
        "--seconds",
        f"{seconds:g}",
    ]
    with child([sys.executable, "-m", "tests.replay", "--dir", str(home), *options], home / "replay.log"):
        yield


@contextmanager
def _central(folder: Path) -> Iterator[tuple[int, psutil.Process]]:
    port = free_port()
    command = [
        "victoria-metrics",
        f"-storageDataPath={folder / 'central'}",
        f"-httpListenAddr=127.0.0.1:{port}",
    ]
    with child([*command, "-search.latencyOffset=0s"], folder / "central.log") as process:
        wait_until_served(port)
        yield port, psutil.Process(process.pid)


@contextmanager
def _prometheus(folder: Path, ports: list[int], central: int) -> Iterator[tuple[Prometheus, psutil.Process]]:
    own = free_port()
    rules = json.dumps([str(ROOT / "grafana" / "rules" / name) for name in ("recording.yaml", "alerts.yaml")])
    targets = json.dumps([f"127.0.0.1:{port}" for port in ports])
    text = CONFIG.format(every=EVERY, rules=rules, targets=targets, own=own, central=central)
    (folder / "prometheus.yml").write_text(text, encoding="utf-8")
    command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb"]
    with child([*command, f"--web.listen-address=127.0.0.1:{own}"], folder / "prometheus.log") as process:
        wait_until_served(own)
        yield Prometheus(f"http://127.0.0.1:{own}"), psutil.Process(process.pid)


if __name__ == "__main__":
    sys.exit(main())
