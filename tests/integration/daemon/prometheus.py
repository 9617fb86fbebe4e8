"""A real Prometheus for tests: scrapes the targets every second and answers queries."""

from __future__ import annotations

import json
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import PATIENCE

CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: gpumon
    static_configs: [{{targets: {targets}}}]
"""


@contextmanager
def prometheus(program: str, folder: Path, targets: list[str]) -> Iterator[Callable[[str], list[float]]]:
    """Yields a function that runs an instant query and returns the values."""
    (folder / "prometheus.yml").write_text(CONFIG.format(targets=json.dumps(targets)), encoding="utf-8")
    port = _free_port()
    command = [
        program,
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/tsdb",
        f"--web.listen-address=127.0.0.1:{port}",
        "--enable-feature=exemplar-storage",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield lambda query: _ask(port, query)
    finally:
        process.terminate()
        process.wait(20)


def _ask(port: int, query: str) -> list[float]:
    url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            found = json.load(answer)
    except OSError:
        return []
    return [float(one["value"][1]) for one in found["data"]["result"]]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
