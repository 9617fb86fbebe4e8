"""Container and pod names from the files of each runtime."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from monitor.host.identity import read_identity
from monitor.host.names import CONTAINERD, DOCKER, KUBELET_LOGS, STORAGE, UNKNOWN, ContainerNames, Names

ID = "0f" * 32


def write(path: Path, document: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))


def test_docker(tmp_path: Path) -> None:
    write(tmp_path / DOCKER / ID / "config.v2.json", {"Name": "/notebook", "Config": {"Labels": None}})
    assert ContainerNames(tmp_path).find(ID) == Names("notebook")


def test_containerd_knows_the_pod(tmp_path: Path) -> None:
    annotations = {
        "io.kubernetes.cri.container-name": "trainer",
        "io.kubernetes.cri.sandbox-name": "resnet-0",
        "io.kubernetes.cri.sandbox-namespace": "team-a",
    }
    write(tmp_path / CONTAINERD / "k8s.io" / ID / "config.json", {"annotations": annotations})
    assert ContainerNames(tmp_path).find(ID) == Names("trainer", "resnet-0", "team-a")


def test_crio_and_podman(tmp_path: Path) -> None:
    annotations = {"io.kubernetes.container.name": "trainer", "io.kubernetes.pod.name": "bert-1"}
    write(tmp_path / STORAGE / ID / "userdata/config.json", {"annotations": annotations})
    assert ContainerNames(tmp_path).find(ID) == Names("trainer", "bert-1")
    write(tmp_path / STORAGE / ID / "userdata/config.json", {})
    write(tmp_path / STORAGE / "containers.json", [{"id": "else"}, {"id": ID, "names": ["box"]}])
    assert ContainerNames(tmp_path).find(ID) == Names("box")


def test_the_kubelets_logs_name_everything_and_need_no_root(tmp_path: Path) -> None:
    logs = tmp_path / KUBELET_LOGS
    logs.mkdir(parents=True)
    (logs / f"bert-0_team-a_trainer-{ID}.log").symlink_to("/nowhere")
    (logs / f"bert-1_team-a_trainer-{'0e' * 32}.log").symlink_to("/nowhere")
    assert ContainerNames(tmp_path).find(ID) == Names("trainer", "bert-0", "team-a")
    assert ContainerNames(tmp_path).find("0d" * 32) == UNKNOWN


@pytest.mark.parametrize("document", ["{broken", "[]", '"text"', '{"Name": 5, "Config": []}'])
def test_odd_files_name_nothing(tmp_path: Path, document: str) -> None:
    write(tmp_path / DOCKER / ID / "config.v2.json", document)
    assert ContainerNames(tmp_path).find(ID) == UNKNOWN


def test_an_id_is_never_a_path(tmp_path: Path) -> None:
    write(tmp_path / DOCKER / "x/config.v2.json", {"Name": "/secret"})
    assert ContainerNames(tmp_path).find("../containers/x") == UNKNOWN
    assert ContainerNames(tmp_path).find(None) == UNKNOWN


def test_a_process_gets_both_names(tmp_path: Path) -> None:
    annotations = {"io.kubernetes.cri.container-name": "main", "io.kubernetes.cri.sandbox-name": "job-0"}
    write(tmp_path / CONTAINERD / "k8s.io" / ID / "config.json", {"annotations": annotations})
    write(tmp_path / "5/cgroup", f"0::/kubepods/burstable/pod{'1' * 32}/{ID}\n")
    found = read_identity(tmp_path / "5", None, ContainerNames(tmp_path))
    assert (found.container, found.container_name, found.pod) == (ID, "main", "job-0")
    child = read_identity(tmp_path / "5", found)
    assert (child.container_name, child.pod) == ("main", "job-0")
