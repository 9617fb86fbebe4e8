"""The Helm chart: what it creates in Kubernetes, and that its copies of rules and dashboards are ours."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
import yaml

from grafana.build import HERE
from monitor.host.names import KUBELET_LOGS
from monitor.model import settings
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
    from monitor.model.settings import flag, options, variable

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
    assert dropped["action"] == "labeldrop" and {"pod", "namespace"} <= set(dropped["regex"].split("|"))


def test_rules_and_dashboards_are_the_checked_in_ones() -> None:
    renderer = Renderer(defaults())
    for made, name in zip(renderer.render("prometheusrule.yaml"), ("recording", "alerts"), strict=True):
        assert made["spec"] == yaml.safe_load((HERE / "rules" / f"{name}.yaml").read_text())
    maps = renderer.render("dashboards.yaml")
    boards = {name: text for one in maps for name, text in one["data"].items()}
    for name, text in boards.items():
        own = (HERE / "json" / name.removeprefix("gpumon-")).read_text()
        assert json.loads(text) == json.loads(own)
    assert len(boards) == len(list((HERE / "json").glob("*.json")))


def test_kubectl_can_apply_every_dashboard() -> None:
    """It stores what it applied as JSON in an annotation."""
    for one in Renderer(defaults()).render("dashboards.yaml"):
        assert len(json.dumps(one)) < 262_144, one["metadata"]["name"]


def test_names_secrets_and_priority_are_the_users_to_choose() -> None:
    secrets = [{"name": "registry"}]
    spec = pod(imagePullSecrets=secrets, priorityClassName="gpu-monitoring")
    assert spec["imagePullSecrets"] == secrets and spec["priorityClassName"] == "gpu-monitoring"
    assert "imagePullSecrets" not in pod() and "priorityClassName" not in pod(priorityClassName="")
    renderer = Renderer(defaults(name="watch"))
    named = {one["metadata"]["name"] for template in TEMPLATES for one in renderer.render(template)}
    assert all(name == "watch" or name.startswith("watch-") for name in named)


def test_the_web_config_reaches_the_daemon_and_everybody_who_asks_it() -> None:
    values = defaults(webConfig={"secret": "gpumon-web"}, scheme="https")
    spec = Renderer(values).render("daemonset.yaml")[0]["spec"]["template"]["spec"]
    container = spec["containers"][0]
    assert {"name": "GPUMON_WEB_CONFIG", "value": "/etc/gpumon/web/web.yml"} in container["env"]
    web = next(volume for volume in spec["volumes"] if volume["name"] == "web")
    assert web["secret"] == {"secretName": "gpumon-web", "defaultMode": 0o440}
    assert spec["securityContext"]["fsGroup"] == spec["securityContext"]["runAsGroup"], "who may read it"
    assert container["livenessProbe"]["httpGet"]["scheme"] == "HTTPS"
    monitor = Renderer(values).render("servicemonitor.yaml")[0]["spec"]["endpoints"][0]
    assert monitor["scheme"] == "https"
    assert "web" not in {volume["name"] for volume in pod()["volumes"]}


def test_the_kubelets_socket_is_root_s_and_needs_no_capability() -> None:
    spec = pod(podResources={"enabled": True, "directory": "/var/lib/kubelet/pod-resources"}, user=4242)
    context, container = spec["securityContext"], spec["containers"][0]
    assert (context["runAsUser"], context["runAsGroup"]) == (0, 4242) and "runAsNonRoot" not in context
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "chown 0:4242 /rings" in spec["initContainers"][0]["args"][0]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts["pod-resources"] == str(settings.Settings().pod_resources.parent)  # type: ignore[union-attr]
    assert mounts["logs"] == f"/{KUBELET_LOGS}", "names of pods need no root"
    assert pod()["securityContext"]["runAsUser"] == 10835


def test_a_pod_monitor_finds_the_same_pods() -> None:
    values = defaults()
    assert Renderer(values).render("podmonitor.yaml") == []
    values["podMonitor"]["enabled"] = True
    made = Renderer(values).render("podmonitor.yaml")[0]["spec"]
    service = Renderer(values).render("servicemonitor.yaml")[0]["spec"]
    assert made["selector"] == service["selector"]
    assert made["podMetricsEndpoints"] == service["endpoints"]


def test_the_network_policy_lets_scrapes_in_and_nothing_out() -> None:
    values = defaults(networkPolicy={"enabled": True, "from": [{"namespaceSelector": {}}]})
    spec = Renderer(values).render("networkpolicy.yaml")[0]["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"] and "egress" not in spec
    assert spec["ingress"] == [{"ports": [{"port": "metrics"}], "from": [{"namespaceSelector": {}}]}]
    assert Renderer(defaults()).render("networkpolicy.yaml") == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"prot": 1},
        {"port": "10835"},
        {"user": 0},
        {"scheme": "ftp"},
        {"image": {"tag": "1"}},
        {"name": "A_B"},
    ],
    ids=str,
)
def test_the_schema_takes_the_values_and_refuses_mistakes(wrong: dict[str, Any]) -> None:
    schema = jsonschema_rs.validator_for(json.loads((CHART / "values.schema.json").read_text()))
    assert schema.is_valid(defaults())
    assert not schema.is_valid(defaults(**wrong))


def test_the_schema_knows_every_value() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(schema["properties"]) == set(defaults())


@pytest.mark.parametrize("part", ["serviceMonitor", "prometheusRule", "dashboards"])
def test_parts_can_be_left_out(part: str) -> None:
    values = defaults()
    values[part]["enabled"] = False
    assert Renderer(values).render(f"{part.lower()}.yaml") == []


def test_the_renderer_refuses_what_it_does_not_know() -> None:
    with pytest.raises(TemplateError, match="unknown function lookup"):
        Renderer(defaults())._text("{{ lookup .Values }}", {"Values": {}})
