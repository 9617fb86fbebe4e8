"""Checks of the places gpumon and trainers write to: ring directory, shared memory, history."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path

from monitor.doctor.check import Context, Result, check, failed, passed, skipped, warned
from monitor.host.procfs import read_text
from monitor.model.units import size

RING_BYTES_LOW = 64 << 20
RING_BYTES_MIN = 8 << 20
"""A ring starts at about 1 MiB and may grow to 64."""
SHM_BYTES_SMALL = 1 << 30
"""Chosen: a few workers with batches of images fill a gigabyte."""
NETWORK_KINDS = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "fuse.sshfs", "9p")
)


@check("ring-directory", "where runs write their rings: exists, writable, enough room, private enough")
def ring_directory(context: Context) -> Result:
    results = [_ring_directory(context, path) for path in context.settings.dir]
    return max(results, key=lambda result: ("PASS", "SKIP", "WARN", "FAIL").index(result.status))


def _ring_directory(context: Context, path: Path) -> Result:
    elsewhere = "choose another one with --dir or GPUMON_DIR"
    if not path.exists() and not path.is_symlink():
        return _missing_directory(path, elsewhere)
    if not path.is_dir():
        return failed(f"{path} is not a directory", elsewhere, path=str(path))
    error = try_to_write(path)
    if error:
        owner = path.stat().st_uid
        return failed(
            f"{path}: {error}", f"chown or chmod it (owner: uid {owner}), or {elsewhere}", path=str(path)
        )
    return _unsafe(path) or _unfit(context, path) or _ring_passed(path)


def _missing_directory(path: Path, elsewhere: str) -> Result:
    """Trainers and the daemon create it themselves, if permissions allow."""
    parent = next(above for above in path.parents if above.exists())
    error = try_to_write(parent) if parent.is_dir() else f"{parent} is not a directory"
    if error:
        return failed(f"{path} does not exist and cannot be created: {error}", elsewhere, path=str(path))
    return passed(f"{path} does not exist yet and will be made by the first run", path=str(path))


def _unsafe(path: Path) -> Result | None:
    """In a world-writable directory without the sticky bit, anybody can replace anybody's rings."""
    found = path.stat()
    mode = stat.S_IMODE(found.st_mode)
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        return warned(
            f"{path} is writable for everybody (mode {mode:04o}) without the sticky bit",
            f"chmod 3773 {path} (shared service) or chmod 0700 {path} (your own)",
            mode=f"{mode:04o}",
        )
    if hasattr(os, "getuid") and found.st_uid not in (0, os.getuid()):
        return warned(
            f"{path} belongs to uid {found.st_uid}, neither you nor root",
            "use a directory of your own: --dir or GPUMON_DIR",
        )
    return None


def _unfit(context: Context, path: Path) -> Result | None:
    kind = filesystem(context, path)
    if kind in NETWORK_KINDS:
        return warned(
            f"{path} is on a network file system ({kind}): mapped files and locks are unreliable there",
            "use a local directory, best in /dev/shm",
        )
    room = free_bytes(path)
    if room < RING_BYTES_MIN:
        return failed(f"{path} has {size(room)} left", "free space there: rings of ended runs may be deleted")
    if room < RING_BYTES_LOW:
        return warned(f"{path} has only {size(room)} left", "free space: a ring may grow to 64 MiB")
    return None


def _ring_passed(path: Path) -> Result:
    mode = stat.S_IMODE(path.stat().st_mode)
    rings = sum(1 for name in os.listdir(path) if name.endswith(".ring"))
    return passed(
        f"{path} (mode {mode:04o}, {size(free_bytes(path))} free, {rings} ring(s))",
        path=str(path),
        rings=rings,
    )


@check("shm", "size of /dev/shm, through which DataLoader workers hand over batches")
def shm(context: Context) -> Result:
    path = Path("/dev/shm")
    if not path.is_dir():
        return skipped("no /dev/shm on this system")
    room = os.statvfs(path)
    total, free = room.f_blocks * room.f_frsize, room.f_bavail * room.f_frsize
    remedy = "docker: --shm-size=8g or --ipc=host; Kubernetes: an emptyDir with medium Memory on /dev/shm"
    if total < SHM_BYTES_SMALL:
        why = f"/dev/shm has {size(total)}: DataLoader workers may die of a bus error"
        return warned(why, remedy, total_bytes=total)
    if free < total // 10:
        nearly = f"/dev/shm is nearly full: {size(free)} of {size(total)} left"
        return warned(nearly, "ls -lS /dev/shm shows what fills it")
    return passed(f"/dev/shm: {size(free)} of {size(total)} free", total_bytes=total, free_bytes=free)


@check("history", "where the daemon keeps its history")
def history(context: Context) -> Result:
    path = context.settings.store
    if path is None:
        return skipped("history is switched off (store: none)")
    home = next(above for above in path.parents if above.exists())
    error = try_to_write(home) if home.is_dir() else f"{home} is not a directory"
    if error:
        return failed(f"{path}: {error}", "choose another file with --store, or --store none for no history")
    room = free_bytes(home)
    if room < RING_BYTES_LOW:
        return warned(f"{home} has only {size(room)} left", "free space, or lower --store-max-size")
    return passed(f"{path} ({size(room)} free)", path=str(path))


def try_to_write(directory: Path) -> str | None:
    """Actually create a file, which reveals permissions, read-only mounts and quotas. None: success."""
    try:
        with tempfile.TemporaryFile(dir=directory, prefix=".gpumon-doctor-") as file:
            file.write(b"\0" * 4096)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return None


def free_bytes(path: Path) -> int:
    return shutil.disk_usage(path).free


def filesystem(context: Context, path: Path) -> str | None:
    """Type of the file system `path` is on, by the longest mount point above it."""
    real, best, kind = os.path.realpath(path), "", None
    for line in (read_text(context.roots.proc / "self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        point = left.split()[4]
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, right.split()[0]
    return kind
