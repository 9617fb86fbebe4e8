"""Scrape and remote-write configs, provisioning and compose: checked by the programs that read them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from grafana.build import alert_groups
from tests.conftest import require_program

ROOT = Path(__file__).resolve().parents[3]
PROMETHEUS = ROOT / "deploy" / "prometheus"
GRAFANA = ROOT / "grafana"


def run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "path", [PROMETHEUS / "prometheus.yaml", GRAFANA / "prometheus.yaml"], ids=["deploy", "compose"]
)
def test_prometheus_configs(path: Path) -> None:
    run(require_program("promtool"), "check", "config", path)


def test_agent_config() -> None:
    run(require_program("promtool"), "check", "config", "--agent", PROMETHEUS / "agent.yaml")


def test_vmagent_config() -> None:
    url = "-remoteWrite.url=http://127.0.0.1:1/api/v1/write"
    run(require_program("vmagent"), f"-promscrape.config={PROMETHEUS / 'vmagent.yaml'}", url, "-dryRun")


def test_vmalert_takes_the_rules() -> None:
    run(require_program("vmalert"), f"-rule={GRAFANA}/rules/*.yaml", "-dryRun")


def test_targets_are_file_sd() -> None:
    groups = json.loads((PROMETHEUS / "targets" / "nodes.json").read_text())
    assert all(set(group) == {"targets", "labels"} for group in groups)
    assert all(target.endswith(":9835") for group in groups for target in group["targets"])


def test_alertmanager_routes_to_receivers_that_exist_and_names_alerts_that_exist() -> None:
    config = yaml.safe_load((PROMETHEUS / "alertmanager.yaml").read_text())
    receivers = {one["name"] for one in config["receivers"]}
    routes = [config["route"], *config["route"]["routes"]]
    assert {route["receiver"] for route in routes} <= receivers
    known = {rule["alert"] for group in alert_groups()["groups"] for rule in group["rules"]}
    assert set(re.findall(r"Gpumon\w+", str(config))) <= known


def test_compose_mounts_what_is_there_and_stays_on_loopback() -> None:
    services = yaml.safe_load((GRAFANA / "compose.yaml").read_text())["services"]
    for service in services.values():
        assert ":" in service["image"] and not service["image"].endswith("latest")
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert not source.startswith(".") or (GRAFANA / source).exists(), source
    assert "--web.listen-address=127.0.0.1:9090" in services["prometheus"]["command"]
    assert services["grafana"]["environment"]["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"


def test_provisioning_leads_to_the_dashboards() -> None:
    provider = yaml.safe_load((GRAFANA / "provisioning" / "dashboards" / "gpumon.yaml").read_text())[
        "providers"
    ][0]
    mounts = yaml.safe_load((GRAFANA / "compose.yaml").read_text())["services"]["grafana"]["volumes"]
    assert f"./json:{provider['options']['path']}:ro" in mounts
    source = yaml.safe_load((GRAFANA / "provisioning" / "datasources" / "prometheus.yaml").read_text())[
        "datasources"
    ][0]
    assert source["type"] == "prometheus" and source["isDefault"] is True
