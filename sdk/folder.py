"""Whether a folder is safe for rings: only its owner, root and the service may replace files in it."""

from __future__ import annotations

import os
import stat

SERVICE = "gpumon"
"""The user the service runs as (`deploy/systemd`), unless `GPUMON_SERVICE_USER` names another."""


def problem(folder: str) -> str | None:
    """Why rings must not be in this folder; None if they may. Raises `OSError` if it does not exist."""
    if not hasattr(os, "getuid"):
        return None  # Windows: folders under the user's own belong to the user
    found = os.lstat(folder)
    if stat.S_ISLNK(found.st_mode):
        return "it is a symbolic link"
    if not stat.S_ISDIR(found.st_mode):
        return "it is not a folder"
    if found.st_uid not in _trusted():
        return f"it belongs to user {found.st_uid}, who is neither you, nor root, nor the service"
    if _is_shared(found) and not found.st_mode & stat.S_ISVTX:
        return "others can replace files in it: it is writable by them and has no sticky bit"
    return None


def _is_shared(found: os.stat_result) -> bool:
    """Whether others may write to it. The user's own group does not count: often it has one member."""
    others = found.st_mode & stat.S_IWOTH
    return bool(others or (found.st_mode & stat.S_IWGRP and found.st_gid != os.getgid()))


def _trusted() -> set[int]:
    trusted = {0, os.getuid()}
    service = os.environ.get("GPUMON_SERVICE_USER") or SERVICE
    if service.isdecimal():
        return trusted | {int(service)}
    try:
        import pwd

        trusted.add(pwd.getpwnam(service).pw_uid)
    except (ImportError, KeyError):
        pass  # no service is installed here
    return trusted
