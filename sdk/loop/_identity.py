"""The identity of this process: run id, rank, host, container, commit. Read once; nothing is executed."""

from __future__ import annotations

import os
import re
import sys
import time
import zlib
from typing import Any

from ..redact import redact

_CONTAINER = re.compile(
    r"(?:docker|crio|libpod|containerd)[-/:]([0-9a-f]{12,64})|/([0-9a-f]{64})(?:\.scope)?$", re.M
)
_POD = re.compile(r"pod([0-9a-f]{8}[-_][0-9a-f_-]{27})")


def _first(*names: str) -> str | None:
    return next((value for name in names if (value := os.environ.get(name))), None)


def _number(*names: str) -> int | None:
    value = _first(*names)
    return int(value) if value is not None and value.isdigit() else None


def rank() -> int:
    """From torchrun, Slurm or MPI; else from an initialized process group; else 0."""
    found = _number("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
    return found if found is not None else _from_group("get_rank", 0)


def world() -> int:
    found = _number("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
    return found if found is not None else _from_group("get_world_size", 1)


def _from_group(function: str, default: int) -> int:
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return default
    return int(getattr(distributed, function)())


def local_rank() -> int | None:
    return _number("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK")


def run_id(name: str) -> str:
    """The same on every rank of a launch, different for each launch."""
    given = os.environ.get("GPUMON_RUN_ID")
    if given:
        return clean(given)
    seed = _launch()
    tail = f"{zlib.crc32(seed.encode()):08x}" if seed else os.urandom(4).hex()
    stamp = "" if seed else time.strftime("%m%d-%H%M%S-")
    return f"{clean(name)[:32]}-{stamp}{tail}"


def _launch() -> str | None:
    """What all ranks of one launch share, or None for a process on its own."""
    job, elastic = _first("SLURM_JOB_ID"), _first("TORCHELASTIC_RUN_ID")
    if world() < 2:
        return None
    parts = [job, _first("SLURM_STEP_ID"), elastic, _first("MASTER_ADDR"), _first("MASTER_PORT")]
    parts.append(_first("TORCHELASTIC_RESTART_COUNT"))
    if _number("LOCAL_WORLD_SIZE") == world() or (elastic is None and job is None):
        parts.append(f"{os.getppid()}@{_started(os.getppid())}")
    return "|".join(part or "" for part in parts)


def _started(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


def clean(text: str) -> str:
    """The text made safe for a file name."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-.") or "run"


def script() -> str | None:
    main = sys.modules.get("__main__")
    found = getattr(main, "__file__", None) or (
        sys.argv[0] if sys.argv and sys.argv[0] not in ("", "-c", "-m") else None
    )
    return os.path.abspath(found) if found else None


def default_name() -> str:
    chosen = os.environ.get("GPUMON_RUN_NAME")
    if chosen:
        return chosen
    path = script()
    if path is None:
        return "training"
    stem = os.path.splitext(os.path.basename(path))[0]
    return os.path.basename(os.path.dirname(path)) if stem == "__main__" else stem


def command() -> str:
    """The command line without its secrets: others see it in the ring, on screens and in the history."""
    words = getattr(sys, "orig_argv", None) or sys.argv
    return " ".join(redact(words))[:2000]


def host() -> str:
    if hasattr(os, "uname"):
        return os.uname().nodename
    return os.environ.get("COMPUTERNAME", "")


def user() -> str | None:
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        return _first("USER", "USERNAME", "LOGNAME")


def container() -> str | None:
    """The container id, from the kernel's own files."""
    for path in ("/proc/self/cgroup", "/proc/self/mountinfo"):
        found = _CONTAINER.search(_read(path))
        if found:
            return (found.group(1) or found.group(2))[:12]
    return None


def pod() -> str | None:
    found = _POD.search(_read("/proc/self/cgroup"))
    if found:
        return found.group(1).replace("_", "-")
    return os.environ.get("HOSTNAME") if "KUBERNETES_SERVICE_HOST" in os.environ else None


def _read(path: str, limit: int = 65536) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(limit)
    except OSError:
        return ""


def git_commit(start: str | None) -> str | None:
    """Commit of the checkout the script is in, read from `.git` itself."""
    folder = os.path.dirname(start) if start else os.getcwd()
    while True:
        git = os.path.join(folder, ".git")
        if os.path.exists(git):
            return _head(git)
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _head(git: str) -> str | None:
    if os.path.isfile(git):
        pointer = _read(git).partition("gitdir:")[2].strip()
        git = os.path.join(os.path.dirname(git), pointer)
    head = _read(os.path.join(git, "HEAD")).strip()
    if not head.startswith("ref:"):
        return head[:40] or None
    name = head[4:].strip()
    common = os.path.join(git, _read(os.path.join(git, "commondir")).strip() or ".")
    loose = _read(os.path.join(git, name)).strip() or _read(os.path.join(common, name)).strip()
    if loose:
        return loose[:40]
    packed = re.search(
        rf"^([0-9a-f]{{40}}) {re.escape(name)}$", _read(os.path.join(common, "packed-refs"), 1 << 22), re.M
    )
    return packed.group(1) if packed else None


def describe(name: str, mode: str, version: str) -> dict[str, Any]:
    """A ring's meta, without the configuration probe's results."""
    path = script()
    return {
        "kind": "trainer",
        "run": run_id(name),
        "name": name,
        "rank": rank(),
        "world": world(),
        "local_rank": local_rank(),
        "host": host(),
        "pid": os.getpid(),
        "user": user(),
        "container": container(),
        "pod": pod(),
        "slurm_job": _first("SLURM_JOB_ID"),
        "git_commit": git_commit(path),
        "command": command(),
        "script": path,
        "sdk_version": version,
        "way": mode,
        "phases": [],
        "scalars": [],
        "batch_size": None,
        "device": None,
        "device_uuid": None,
        "config": {},
    }
