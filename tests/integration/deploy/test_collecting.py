"""The remote-write configs, actually run: an agent scrapes a daemon and writes to a VictoriaMetrics."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from docs.tools.grafana_preview.answers import Prometheus
from tests.conftest import require_program, wait_for
from tests.integration.daemon.process import Daemon
from tests.integration.grafana.stage import central, child, free_port

CONFIGS = Path(__file__).resolve().parents[3] / "deploy" / "prometheus"

pytestmark = pytest.mark.slow


class Site(NamedTuple):
    daemon: int
    central: int


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    require_program("victoria-metrics")
    folder = tmp_path_factory.mktemp("site")
    with Daemon(folder, "--source", "simulated", "--gpus", "2") as daemon, central(folder) as port:
        yield Site(daemon.port, port)


def prepared(name: str, folder: Path, site: Site, cluster: str) -> Path:
    """The config with this test's target, centre, cluster name and a shorter interval."""
    text = (CONFIGS / name).read_text(encoding="utf-8")
    for old, new in (
        ("scrape_interval: 15s", "scrape_interval: 1s"),
        ("cluster: main", f"cluster: {cluster}"),
        ("http://metrics.example:8428", f"http://127.0.0.1:{site.central}"),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "targets").mkdir()
    target = [{"targets": [f"127.0.0.1:{site.daemon}"], "labels": {"partition": "a100"}}]
    (folder / "targets" / "nodes.json").write_text(json.dumps(target))
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def arrived(site: Site, cluster: str) -> list[dict[str, str]]:
    asked = Prometheus(f"http://127.0.0.1:{site.central}")
    return [one["metric"] for one in asked.instant(f'gpumon_gpu_up{{cluster="{cluster}"}}', time.time())]


def check(site: Site, cluster: str) -> None:
    found = wait_for(lambda: arrived(site, cluster), every=0.3)
    assert {one["gpu"] for one in found} == {"0", "1"}
    assert {(one["job"], one["instance"], one["partition"]) for one in found} == {
        ("gpumon", "127.0.0.1", "a100")
    }


def agent(folder: Path, site: Site) -> list[str]:
    config, own = prepared("agent.yaml", folder, site, "agent"), f"127.0.0.1:{free_port()}"
    places = [f"--config.file={config}", f"--storage.agent.path={folder}/wal", f"--web.listen-address={own}"]
    return [require_program("prometheus"), "--enable-feature=agent", *places]


def vmagent(folder: Path, site: Site) -> list[str]:
    config, own = prepared("vmagent.yaml", folder, site, "vmagent"), f"127.0.0.1:{free_port()}"
    write = f"-remoteWrite.url=http://127.0.0.1:{site.central}/api/v1/write"
    places = [
        f"-promscrape.config={config}",
        f"-remoteWrite.tmpDataPath={folder}/queue",
        f"-httpListenAddr={own}",
    ]
    return [require_program("vmagent"), write, *places]


def test_prometheus_agent_and_vmagent_deliver(site: Site, tmp_path: Path) -> None:
    with ExitStack() as stack:
        for name, command in (("agent", agent), ("vmagent", vmagent)):
            (tmp_path / name).mkdir()
            stack.enter_context(child(command(tmp_path / name, site), tmp_path / name / "log"))
        check(site, "vmagent")
        check(site, "agent")
