"""Runs a command in a view of the file system that forgets what is written to it.

A program of its own (`python enter.py CONFIG COMMAND…`): it makes a mount namespace in which every writable
file system is the lower layer of an overlay whose upper layer is memory, and becomes the command. The memory
goes with the last process that uses it, however that ends. Standard library only.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
FAILED = 125
"""Exit code when there is no such view on this machine; the reason is on stderr."""
_KERNEL = ("/proc", "/sys", "/dev", "/run")
"""Belongs to the kernel or to running services: there are no files of the user's in it."""
_libc = ctypes.CDLL(None, use_errno=True)


def main(config: str, words: list[str]) -> None:
    wanted = json.loads(config)
    try:
        _own_namespace()
        root = _layers(wanted["mount_on"], wanted["keep"], wanted["cwd"])
        os.chroot(root)
        os.chdir(wanted["cwd"])
    except OSError as error:
        print(f"no overlay: {error}", file=sys.stderr)
        sys.exit(FAILED)
    os.execvp(words[0], words)


def _own_namespace() -> None:
    """Mounts of our own; whoever is not root needs a user namespace for that, and stays who he is."""
    uid, gid = os.getuid(), os.getgid()
    _check(_libc.unshare(CLONE_NEWNS | (CLONE_NEWUSER if uid else 0)), "unshare")
    if uid:
        for file, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            with open(f"/proc/self/{file}", "w", encoding="ascii") as target:
                target.write(text)
    _mount(None, "/", None, MS_REC | MS_PRIVATE)


def _layers(place: str, keep: list[str], cwd: str) -> str:
    """The whole tree again below `place`: overlays, and what is kept as it is."""
    points = _mount_points()
    _mount("tmpfs", place, "tmpfs", 0, "mode=700")
    root = os.path.join(place, "root")
    os.mkdir(root)
    if os.getuid():
        _mount("/", root, None, MS_BIND | MS_REC)
        _cover("/", root, place, [point for point, _ in points] + list(_KERNEL))
        _own_layer(cwd, root, place)
    else:
        _cover_all(points, root, place)
    for point in keep if os.getuid() else (*_KERNEL, *keep):
        if os.path.isdir(point):
            os.makedirs(root + point, exist_ok=True)
            _mount(point, root + point, None, MS_BIND | MS_REC)
    return root


def _cover_all(points: list[tuple[str, bool]], root: str, place: str) -> None:
    """For root: every file system as it is."""
    _overlay("/", root, os.path.join(place, "0"))
    for number, (point, read_only) in enumerate(points, 1):
        target = root + point
        if not os.path.lexists(target):
            continue
        if read_only or not os.path.isdir(point):
            _mount(point, target, None, MS_BIND)
        else:
            _overlay_or_read_only(point, target, os.path.join(place, str(number)))


def _cover(folder: str, root: str, place: str, points: list[str]) -> None:
    """For a user: the kernel takes no folder as a lower layer that has somebody else's mounts below it, so
    those go folder by folder. What can be written to and not be covered is a reason to give up."""
    inside = folder.rstrip("/") + "/"
    if folder in _KERNEL or not os.access(folder, os.X_OK):
        return None
    if not any(point.startswith(inside) for point in points):
        layer = os.path.join(place, "layer" + folder.replace("/", "-"))
        return _overlay(folder, root + folder, layer)
    if os.access(folder, os.W_OK):
        raise PermissionError(1, f"{folder} can be written to and has other mounts below it")
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            _cover(entry.path, root, place, points)
    return None


def _own_layer(folder: str, root: str, place: str) -> None:
    """Where the script runs it writes: a layer that begins there needs no copy of the folders above it, which
    may belong to others."""
    _overlay(folder, root + folder, os.path.join(place, "here"))


def _overlay_or_read_only(point: str, target: str, layer: str) -> None:
    """A file system that cannot be a lower layer may be read and not written."""
    try:
        _overlay(point, target, layer)
    except OSError:
        _mount(point, target, None, MS_BIND)
        _mount(None, target, None, MS_BIND | MS_REMOUNT | MS_RDONLY)


def _overlay(lower: str, target: str, layer: str) -> None:
    upper, work = os.path.join(layer, "upper"), os.path.join(layer, "work")
    os.makedirs(upper)
    os.makedirs(work)
    os.chmod(upper, os.stat(lower).st_mode & 0o7777)
    options = f"lowerdir={_escaped(lower)},upperdir={upper},workdir={work}"
    _mount("overlay", target, "overlay", 0, options + (",userxattr" if os.getuid() else ""))


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")


def _mount_points() -> list[tuple[str, bool]]:
    """Those below the root that are not the kernel's, the outer ones first, and whether each is read-only."""
    found: dict[str, bool] = {}
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            fields = line.split()
            point = fields[4].encode().decode("unicode_escape")
            if point != "/" and not any(point == one or point.startswith(f"{one}/") for one in _KERNEL):
                found[point] = "ro" in fields[5].split(",")
    return sorted(found.items())


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    given = [one.encode() if one is not None else None for one in (source, target, kind, data)]
    done = _libc.mount(given[0], given[1], given[2], ctypes.c_ulong(flags), given[3])
    _check(done, f"mount on {target}")


def _check(done: int, what: str) -> None:
    if done != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
