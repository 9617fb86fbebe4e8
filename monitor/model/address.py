"""Where a daemon is: an address as people type it, and the default when they type none."""

from __future__ import annotations

import base64
import os
import socket
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from monitor.model import settings as options
from monitor.model import values
from monitor.model.errors import UserError
from monitor.model.paths import SOCKET_NAME, typed

CONNECT_VARIABLE = "GPUMON_CONNECT"
SERVICE_SOCKET = Path("/run/gpumon") / SOCKET_NAME
FORMS = "use http://HOST:PORT, https://HOST:PORT or unix:/path/to/gpumon.sock"
LISTEN_SECONDS = 2.0
"""Our choice: a listener on this machine accepts a connection at once."""


class Address(Struct, frozen=True):
    """Where a daemon is: a socket path, or host and port."""

    url: str
    path: Path | None = None
    host: str = ""
    port: int = 0
    tls: bool = False
    authorization: str | None = None


def parse(url: str) -> Address:
    """An address from what a user typed; a bare ``host:port`` and a bare path are understood too."""
    if url.startswith("unix:"):
        return Address(url, path=typed(url[5:].removeprefix("//")))
    if url.startswith(("/", "~", "./")):
        return Address(f"unix:{url}", path=typed(url))
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port or (443 if parts.scheme == "https" else 10835)
    except ValueError:
        raise UserError(f"{url!r} is not an address of a daemon", hint=FORMS) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"{url!r} is not an address of a daemon", hint=FORMS)
    shown = f"{parts.scheme}://{parts.hostname}:{port}"
    return Address(
        shown, host=parts.hostname, port=port, tls=parts.scheme == "https", authorization=_basic(parts)
    )


def _basic(parts: Any) -> str | None:
    if parts.username is None:
        return None
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def resolve(given: str | None = None) -> Address:
    """``--connect``, else GPUMON_CONNECT, else the socket of the user's or the machine's daemon, else
    the port. Nothing is contacted."""
    named = given or os.environ.get(CONNECT_VARIABLE)
    if named:
        return parse(named)
    settings = options.load()
    for path in (settings.socket, SERVICE_SOCKET):
        if path is not None and _trusted(path):
            return Address(f"unix:{path}", path=path)
    return parse(f"http://{settings.listen or values.DEFAULT_LISTEN}".replace("//0.0.0.0:", "//127.0.0.1:"))


def _trusted(path: Path) -> bool:
    """Anybody can put a socket in a shared directory: trust only our own, root's, and the service's."""
    owner = _owner(path)
    return owner is not None and (path == SERVICE_SOCKET or owner in (0, os.getuid()))


def _owner(path: Path) -> int | None:
    try:
        return path.stat().st_uid
    except OSError:
        return None


def is_served(address: Address) -> bool:
    """Whether anybody listens there. Much cheaper than importing what it takes to ask."""
    try:
        with _connection(address):
            return True
    except OSError:
        return False


def _connection(address: Address) -> socket.socket:
    if address.path is None:
        return socket.create_connection((address.host, address.port), timeout=LISTEN_SECONDS)
    asking = socket.socket(socket.AF_UNIX)
    asking.settimeout(LISTEN_SECONDS)
    try:
        asking.connect(str(address.path))
    except OSError:
        asking.close()
        raise
    return asking
