"""Where a daemon keeps its own files: lock, socket, history."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

from sdk.ring import default_directory

try:
    from _blake2 import blake2b  # as `hashlib` does, which would also load OpenSSL
except ImportError:
    from hashlib import blake2b

SOCKET_NAME = "gpumon.sock"
"""For a service."""


def typed(text: str) -> Path:
    """A path as a user typed it: ``~`` is expanded, unless the user is unknown or has no home."""
    return Path(os.path.expanduser(text))


def runtime_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the lock and the socket live: systemd's RuntimeDirectory, else the user's own, else a private one
    next to the history. Never the ring directory, which others may write to."""
    given = environ.get("RUNTIME_DIRECTORY")
    if given:
        return Path(given.split(":")[0])
    uid = os.getuid() if hasattr(os, "getuid") else 0
    own = Path(environ.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}")
    if environ.get("XDG_RUNTIME_DIR") or own.is_dir():
        return own / "gpumon"
    if not _writable_home():
        return Path(default_directory()).parent / f"gpumon-runtime-{uid}"
    # a home may be shared by many machines: each gets its own lock and socket in it
    return state_directory(environ) / f"runtime-{socket.gethostname()}"


def endpoint_name(directory: Path) -> str:
    """The name of a daemon's lock and socket, derived from its ring directory: a client with the same
    directory finds the socket, and daemons with different directories do not collide."""
    place = os.path.abspath(directory)
    return f"gpumon-{blake2b(os.fsencode(place), digest_size=4).hexdigest()}"


def default_socket(directory: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """A service has one well-known socket; a user has one per ring directory."""
    name = SOCKET_NAME if environ.get("RUNTIME_DIRECTORY") else f"{endpoint_name(directory)}.sock"
    return runtime_directory(environ) / name


def state_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Where history is kept: systemd's StateDirectory, else XDG state."""
    given = environ.get("STATE_DIRECTORY")
    if given:
        return Path(given.split(":")[0])
    if os.path.expanduser("~") == "~":  # a container's made-up user has no home
        return Path(default_directory())
    return Path(environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")) / "gpumon"


def _writable_home() -> bool:
    """The home of a service's or container's user may not exist."""
    home = os.path.expanduser("~")
    return home != "~" and os.access(home, os.W_OK | os.X_OK)
