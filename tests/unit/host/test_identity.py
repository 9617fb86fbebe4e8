"""Containers, pods and Slurm jobs, in each runtime's notation."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monitor.host.identity import (
    Identity,
    find_container,
    find_mounted_container,
    find_pod,
    find_slurm_job,
    parse_command,
    parse_environ,
    read_identity,
)
from monitor.host.processes import is_helper
from monitor.model.owner import user_name

ID = "4f1c" * 16
UID = "1b2c3d4e-0000-4444-8888-abcdefabcdef"
UID_ = UID.replace("-", "_")

RUNTIMES = {
    "docker, cgroup v1": f"5:memory:/docker/{ID}\n0::/docker/{ID}",
    "docker, systemd": f"0::/system.slice/docker-{ID}.scope",
    "docker, nested group": f"0::/system.slice/docker-{ID}.scope/init",
    "docker seen from a sibling namespace": f"0::/../docker-{ID}.scope",
    "containerd, systemd": (
        f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice"
        f"/cri-containerd-{ID}.scope"
    ),
    "containerd, cgroupfs": f"3:cpu,cpuacct:/kubepods/burstable/pod{UID}/{ID}",
    "containerd under its service": (
        f"2:cpu:/system.slice/containerd.service/kubepods-besteffort-pod{UID_}.slice:cri-containerd:{ID}"
    ),
    "cri-o": f"0::/kubepods.slice/kubepods-pod{UID_}.slice/crio-{ID}.scope",
    "podman": f"0::/machine.slice/libpod-{ID}.scope/container",
    "podman, rootless": f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope",
    "nerdctl": f"0::/system.slice/nerdctl-{ID}.scope",
    "ECS": f"4:memory:/ecs/0123/{ID}",
}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_container_id_is_found(runtime: str) -> None:
    assert find_container(RUNTIMES[runtime]) == ID


def test_the_pod_uid_is_found_in_its_usual_spelling() -> None:
    pods = [name for name, text in RUNTIMES.items() if "kubepods" in text]
    assert len(pods) == 4
    assert {find_pod(RUNTIMES[name]) for name in pods} == {UID}


@pytest.mark.parametrize(
    "text",
    [
        "0::/user.slice/user-1000.slice/session-2.scope",
        "0::/",
        "",
        "0::/system.slice/docker.service",
        "0::/system.slice/slurmstepd.scope/job_7/step_0",
    ],
)
def test_no_container_on_the_bare_machine(text: str) -> None:
    assert find_container(text) is None
    assert find_pod(text) is None


def test_named_containers() -> None:
    assert find_container("0::/lxc.payload.trainbox/init.scope") == "trainbox"
    assert find_container("0::/machine.slice/machine-box.scope/payload") == "box"


def test_slurm_jobs_in_both_cgroup_versions() -> None:
    assert find_slurm_job("4:memory:/slurm/uid_1000/job_4711/step_0/task_0") == "4711"
    assert find_slurm_job("0::/system.slice/slurmstepd.scope/job_4712/step_batch/user/task_0") == "4712"
    assert find_slurm_job("0::/jobs/job_5") is None


def test_a_container_behind_a_cgroup_namespace_is_found_by_its_mounts() -> None:
    line = f"700 690 8:1 /var/lib/docker/containers/{ID}/hostname /etc/hostname rw - ext4 /dev/sda1 rw"
    assert find_mounted_container(line) == ID
    assert find_mounted_container("27 1 254:0 / / rw - ext4 /dev/vda rw") is None


def test_only_the_variables_that_name_a_job_are_taken() -> None:
    raw = b"SECRET=hunter2\0SLURM_JOB_ID=12\0HOSTNAME=pod-0\0\0"
    assert parse_environ(raw) == {"SLURM_JOB_ID": "12", "HOSTNAME": "pod-0"}


def test_command_lines() -> None:
    assert parse_command(b"python\0train.py\0--lr\x000.1\0") == "python train.py --lr 0.1"
    assert parse_command(b"") is None
    assert parse_command(b"\xff\xfe") is not None


def test_an_unknown_user_is_its_number() -> None:
    assert user_name(os.getuid()) != ""
    assert user_name(987654) == "987654"


def _process(root: Path, **files: bytes) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (root / name).write_bytes(content)
    return root


def test_a_pod_is_named_by_its_environment(tmp_path: Path) -> None:
    process = _process(
        tmp_path / "5",
        cgroup=RUNTIMES["cri-o"].encode(),
        cmdline=b"python\0a.py\0",
        status=b"Name:\tpython\nUid:\t0\t0\t0\t0\n",
        environ=b"KUBERNETES_SERVICE_HOST=10.0.0.1\0HOSTNAME=trainer-abc-0\0",
    )
    identity = read_identity(process)
    assert (identity.container, identity.pod, identity.user) == (ID, "trainer-abc-0", "root")


def test_without_a_readable_environment_the_uid_names_the_pod(tmp_path: Path) -> None:
    identity = read_identity(_process(tmp_path / "5", cgroup=RUNTIMES["cri-o"].encode()))
    assert identity.pod == UID
    assert (identity.user, identity.command) == (None, None)


def test_a_slurm_job_from_the_environment(tmp_path: Path) -> None:
    identity = read_identity(_process(tmp_path / "5", cgroup=b"0::/\n", environ=b"SLURM_JOB_ID=99\0"))
    assert (identity.slurm_job, identity.container) == ("99", None)


def test_a_child_in_its_parents_group_shares_its_identity(tmp_path: Path) -> None:
    process = _process(tmp_path / "6", cgroup=b"0::/x\n", cmdline=b"worker\0", environ=b"SLURM_JOB_ID=1\0")
    parent = Identity(container="c", pod="p", slurm_job="77", membership="0::/x\n")
    child = read_identity(process, parent)
    assert (child.container, child.pod, child.slurm_job, child.command) == ("c", "p", "77", "worker")
    elsewhere = Identity(slurm_job="77", membership="0::/y\n")
    assert read_identity(process, elsewhere).slurm_job == "1"


def test_a_vanished_process_has_no_identity(tmp_path: Path) -> None:
    assert read_identity(tmp_path / "gone") == Identity()


def test_helpers_are_not_workers_but_the_fork_servers_children_are() -> None:
    tracker = Identity(command="python -c from multiprocessing.resource_tracker import main;main(5)")
    server = Identity(command="python -c from multiprocessing.forkserver import main; main(7)")
    trainer = Identity(command="python train.py")
    assert is_helper(tracker, trainer)
    assert is_helper(server, trainer)
    assert not is_helper(server, server)  # a worker keeps its fork server's command line
    assert not is_helper(trainer, trainer)  # a forked worker keeps the trainer's
    mine = Identity(command="python my_resource_tracker.py")
    assert not is_helper(mine, mine)  # only the library's own
    assert is_helper(Identity(command="python -m torch._inductor.compile_worker --x"), trainer)
