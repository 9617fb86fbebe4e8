"""The Helm chart: what it makes for Kubernetes, and that its copies of rules and dashboards are ours."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from grafana.build import HERE
from tests.unit.deploy.chart import CHART, Renderer, TemplateError, defaults

TEMPLATES = sorted(path.name for path in (CHART / "templates").glob("*.yaml"))


def pod(**changed: Any) -> dict[str, Any]:
    spec: dict[str, Any] = Renderer(defaults(**changed)).render("daemonset.yaml")[0]["spec"]["template"][
        "spec"
    ]
    return spec


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_gives_whole_documents(template: str) -> None:
    for document in Renderer(defaults()).render(template):
        assert {"apiVersion", "kind", "metadata"} <= set(document)
        assert document["metadata"]["namespace"] == "monitoring"
        assert document["metadata"]["labels"]["app.kubernetes.io/name"] == "gpumon"


def test_the_daemon_sees_processes_rings_and_gpus_and_may_nothing_else() -> None:
    spec = pod()
    container = spec["containers"][0]
    assert spec["hostPID"] is True and spec["runtimeClassName"] == "nvidia" and "hostNetwork" not in spec
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["securityContext"]["runAsNonRoot"] is True
    paths = {volume["name"]: volume.get("hostPath", {}).get("path") for volume in spec["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert paths["rings"] == mounts["rings"] == "/dev/shm/gpumon"
    assert {one["name"]: one.get("value") for one in container["env"]}[
        "NVIDIA_DRIVER_CAPABILITIES"
    ] == "utility"


def test_the_rings_folder_is_open_to_every_user_and_readable_by_the_daemon() -> None:
    spec = pod(user=4242)
    first = spec["initContainers"][0]
    assert "chmod 3773 /rings" in first["args"][0] and "chown 4242:4242" in first["args"][0]
    assert spec["securityContext"]["runAsGroup"] == 4242
    assert set(first["securityContext"]["capabilities"]["add"]) == {"CHOWN", "FOWNER", "FSETID"}


def test_values_reach_the_daemon() -> None:
    spec = pod(runtimeClassName="", environment={"GPUMON_MAX_RANKS": "512"}, port=9999)
    container = spec["containers"][0]
    assert "runtimeClassName" not in spec
    assert {"name": "GPUMON_MAX_RANKS", "value": "512"} in container["env"]
    assert container["ports"][0]["containerPort"] == 9999 and ":9999" in container["args"]


def test_the_options_of_the_daemon_exist() -> None:
    from monitor.settings import flag, options, variable

    container = pod()["containers"][0]
    given = {word for word in container["args"] if word.startswith("--")}
    assert given <= {flag(option.name) for option in options()}
    names = {one["name"] for one in container["env"] if one["name"].startswith("GPUMON_")}
    assert names <= {variable(option.name) for option in options()}


def test_monitor_and_service_find_the_pods() -> None:
    renderer = Renderer(defaults())
    monitor = renderer.render("servicemonitor.yaml")[0]["spec"]
    service = renderer.render("service.yaml")[0]
    labels = renderer.render("daemonset.yaml")[0]["spec"]["template"]["metadata"]["labels"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert service["spec"]["selector"].items() <= labels.items()
    assert monitor["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
    dropped = monitor["endpoints"][0]["relabelings"][1]
    assert dropped["action"] == "labeldrop" and "pod" in dropped["regex"].split("|")


def test_rules_and_dashboards_are_the_checked_in_ones() -> None:
    renderer = Renderer(defaults())
    for made, name in zip(renderer.render("prometheusrule.yaml"), ("recording", "alerts"), strict=True):
        assert made["spec"] == yaml.safe_load((HERE / "rules" / f"{name}.yaml").read_text())
    boards = renderer.render("dashboards.yaml")[0]["data"]
    for name, text in boards.items():
        own = (HERE / "json" / name.removeprefix("gpumon-")).read_text()
        assert json.loads(text) == json.loads(own)
    assert len(boards) == len(list((HERE / "json").glob("*.json")))


@pytest.mark.parametrize("part", ["serviceMonitor", "prometheusRule", "dashboards"])
def test_parts_can_be_left_out(part: str) -> None:
    values = defaults()
    values[part]["enabled"] = False
    assert Renderer(values).render(f"{part.lower()}.yaml") == []


def test_the_renderer_refuses_what_it_does_not_know() -> None:
    with pytest.raises(TemplateError, match="unknown function lookup"):
        Renderer(defaults())._text("{{ lookup .Values }}", {"Values": {}})
