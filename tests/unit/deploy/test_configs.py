"""Scrape and remote-write configs, provisioning and compose: checked by the programs that read them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from grafana.build import alert_groups
from monitor.model.values import DEFAULT_LISTEN
from tests.conftest import PATIENCE, require_program

ROOT = Path(__file__).resolve().parents[3]
PROMETHEUS = ROOT / "deploy" / "prometheus"
GRAFANA = ROOT / "grafana"


def run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "path", [PROMETHEUS / "prometheus.yaml", GRAFANA / "prometheus.yaml"], ids=["deploy", "compose"]
)
def test_prometheus_configs(path: Path) -> None:
    run(require_program("promtool"), "check", "config", path)


def test_agent_config() -> None:
    run(require_program("promtool"), "check", "config", "--agent", PROMETHEUS / "agent.yaml")
    run(require_program("promtool"), "check", "config", PROMETHEUS / "federation.yaml")


def test_vmagent_config() -> None:
    url = "-remoteWrite.url=http://127.0.0.1:1/api/v1/write"
    run(require_program("vmagent"), f"-promscrape.config={PROMETHEUS / 'vmagent.yaml'}", url, "-dryRun")


def test_vmalert_takes_the_rules() -> None:
    run(require_program("vmalert"), f"-rule={GRAFANA}/rules/*.yaml", "-dryRun")


def test_targets_are_file_sd() -> None:
    groups = json.loads((PROMETHEUS / "targets" / "nodes.json").read_text())
    assert all(set(group) == {"targets", "labels"} for group in groups)
    assert all(target.endswith(":10835") for group in groups for target in group["targets"])


def test_alertmanager_routes_to_receivers_that_exist_and_names_alerts_that_exist() -> None:
    config = yaml.safe_load((PROMETHEUS / "alertmanager.yaml").read_text())
    receivers = {one["name"] for one in config["receivers"]}
    routes = [config["route"], *config["route"]["routes"]]
    assert {route["receiver"] for route in routes} <= receivers
    known = {rule["alert"] for group in alert_groups()["groups"] for rule in group["rules"]}
    assert set(re.findall(r"Gpumon\w+", str(config))) <= known


def inhibited(source: str, target: str) -> list[list[str]]:
    """The labels by which `source` silences `target`."""
    config = yaml.safe_load((PROMETHEUS / "alertmanager.yaml").read_text())
    rules = config["inhibit_rules"]
    return [
        rule["equal"]
        for rule in rules
        if matches(rule["source_matchers"], source) and matches(rule["target_matchers"], target)
    ]


def matches(matchers: list[str], alert: str) -> bool:
    parts = [re.fullmatch(r'alertname(=~|!~|=)"(.*)"', one) for one in matchers]
    return all(part is not None and bool(re.fullmatch(part[2], alert)) != (part[1] == "!~") for part in parts)


def test_a_run_that_stands_still_explains_a_held_gpu_and_not_the_other_way_round() -> None:
    assert inhibited("GpumonRunStalled", "GpumonGpuIdleHeld") == [["instance"]]
    assert inhibited("GpumonGpuIdleHeld", "GpumonRunStalled") == [], "else both would be silent"


def test_prometheus_tells_the_alertmanager_beside_it() -> None:
    config = yaml.safe_load((PROMETHEUS / "prometheus.yaml").read_text())
    targets = config["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"]
    assert targets == ["127.0.0.1:9093"]


def test_one_port_everywhere() -> None:
    port = DEFAULT_LISTEN.rpartition(":")[2]
    for path in (
        "deploy/Dockerfile",
        "deploy/helm/gpumon/values.yaml",
        "grafana/prometheus.yaml",
        "README.md",
    ):
        text = (ROOT / path).read_text()
        assert port in text and "9835" not in text.replace(port, ""), path


def test_the_image_is_not_roots() -> None:
    text = (ROOT / "deploy" / "Dockerfile").read_text()
    user = re.search(r"^USER (\d+):\d+$", text, re.M)
    assert user is not None and int(user[1]) > 0
    assert text.index("USER") > text.rindex("RUN"), "nothing is built after it"


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
