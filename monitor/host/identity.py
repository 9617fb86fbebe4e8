"""The identity of a process: user, command, container, pod, Slurm job. Read once, rarely refreshed.

A container shows in the path of a process's control group; every runtime spells it differently.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from monitor.host.names import UNKNOWN, ContainerNames
from monitor.host.procfs import read_bytes, read_text
from monitor.model.owner import user_name
from sdk.patterns import later
from sdk.redact import redact

COMMAND_BYTES = 4096
"""Our choice: longer command lines are cut."""

_HEX_ID = r"([0-9a-f]{64})"
_CONTAINER = (
    # systemd driver: docker-<id>.scope, cri-containerd-<id>.scope, crio-<id>.scope, libpod-<id>.scope
    later(rf"(?:docker|cri-containerd|crio|libpod|nerdctl|containerd)-{_HEX_ID}"),
    # containerd under its own service: …slice:cri-containerd:<id>
    later(rf":(?:cri-containerd|docker|nerdctl|[\w.-]+):{_HEX_ID}"),
    # cgroupfs driver: /docker/<id>, /kubepods/burstable/pod…/<id>, /ecs/<task>/<id>
    later(rf"/{_HEX_ID}(?:/|$)"),
    # ECS on Fargate
    later(r"/ecs/[0-9a-f]{32}/([0-9a-f]{32}-\d+)"),
    # LXC, Incus
    later(r"/lxc(?:\.payload\.|/)([^/\n]+)"),
    # systemd-nspawn
    later(r"/machine\.slice/machine-([^/\n]+)\.scope"),
)
_POD = later(r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})")
_SLURM = later(r"slurm[^\n]*?/job_(\d+)")
_MOUNTED_ID = later(rf"/(?:containers|overlay-containers|sandboxes)/{_HEX_ID}/")
_WANTED = frozenset(
    (
        b"SLURM_JOB_ID",
        b"SLURM_JOBID",
        b"POD_NAME",
        b"KUBERNETES_SERVICE_HOST",
        b"HOSTNAME",
        b"APPTAINER_NAME",
        b"SINGULARITY_NAME",
    )
)


class Identity(Struct, frozen=True):
    command: str | None = None
    uid: int | None = None
    container: str | None = None
    pod: str | None = None
    namespace: str | None = None
    slurm_job: str | None = None
    container_name: str | None = None
    membership: str | None = None
    """Text of the process's cgroup file: the key to its limits."""

    @property
    def user(self) -> str | None:
        return None if self.uid is None else user_name(self.uid)


def find_container(membership: str) -> str | None:
    """The container's id (a name for LXC and nspawn), or None outside containers."""
    for pattern in _CONTAINER:
        found = pattern.search(membership)
        if found:
            return found.group(1)
    return None


def find_pod(membership: str) -> str | None:
    """The Kubernetes pod's uid, in its usual spelling."""
    found = _POD.search(membership) if "kubepods" in membership else None
    return found.group(1).replace("_", "-") if found else None


def find_slurm_job(membership: str) -> str | None:
    found = _SLURM.search(membership)
    return found.group(1) if found else None


def find_mounted_container(mountinfo: str) -> str | None:
    """The container id in the paths from which the runtime mounts its files; for processes whose control
    group is hidden by a namespace."""
    found = _MOUNTED_ID.search(mountinfo)
    return found.group(1) if found else None


def parse_environ(raw: bytes) -> dict[str, str]:
    """The few variables that name a job; the rest is nobody's business."""
    pairs = (entry.partition(b"=") for entry in raw.split(b"\0"))
    return {name.decode(): value.decode("utf-8", "replace") for name, _, value in pairs if name in _WANTED}


def parse_command(raw: bytes) -> str | None:
    """The command line without its secrets."""
    words = raw[:COMMAND_BYTES].rstrip(b"\0").decode("utf-8", "replace").split("\0")
    return " ".join(redact(words)) or None


def read_identity(
    directory: Path, parent: Identity | None = None, names: ContainerNames | None = None
) -> Identity:
    """Identity of the process under `directory` (``/proc/PID``).

    A child in its parent's control group is in the same container and job, so its environment need not be
    read; that matters when a job starts dozens of workers at once.
    """
    membership = read_text(directory / "cgroup")
    command = parse_command(read_bytes(directory / "cmdline") or b"")
    uid = _read_uid(directory)
    if parent is not None and parent.membership == membership and parent.uid == uid:
        return replace(parent, command=command)
    environ = parse_environ(read_bytes(directory / "environ") or b"")
    groups = membership or ""
    container = _container(directory, groups, environ)
    known = names.find(container) if names else UNKNOWN
    return Identity(
        command=command,
        uid=uid,
        container=container,
        container_name=known.container,
        pod=known.pod or _pod(groups, environ),
        namespace=known.namespace,
        slurm_job=find_slurm_job(groups) or environ.get("SLURM_JOB_ID") or environ.get("SLURM_JOBID"),
        membership=membership,
    )


def _read_uid(directory: Path) -> int | None:
    """The real owner, from the status file: root owns the directory of a protected process."""
    raw = read_bytes(directory / "status")
    at = raw.find(b"\nUid:") if raw else -1
    if raw is None or at < 0:
        return None
    return int(raw[at + 5 :].split(None, 2)[1])


def _container(directory: Path, groups: str, environ: dict[str, str]) -> str | None:
    return (
        find_container(groups)
        or environ.get("APPTAINER_NAME")
        or environ.get("SINGULARITY_NAME")
        or find_mounted_container(read_text(directory / "mountinfo") or "")
    )


def _pod(groups: str, environ: dict[str, str]) -> str | None:
    """The pod's name if its environment reveals it (Kubernetes sets HOSTNAME to it), else its uid."""
    uid = find_pod(groups)
    in_pod = uid is not None or "KUBERNETES_SERVICE_HOST" in environ
    if not in_pod:
        return None
    hostname = environ.get("HOSTNAME")
    own = hostname if hostname != os.uname().nodename or uid is None else None
    return environ.get("POD_NAME") or own or uid
