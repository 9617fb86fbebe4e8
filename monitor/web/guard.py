"""Middleware around every route: who may ask, security headers, and response counts.

A page on another origin must neither read what runs here nor change anything. There are no CORS headers, and
a request whose Host is not a name of this machine is refused, because that is what DNS rebinding looks like.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING

from monitor.web.families.base import Own

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
]
HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|(\w(?:[\w.-]*\w)?)\.?)(?::[0-9]{1,5})?", re.ASCII)
"""A name or address and an optional port, no more: ``localhost:10835@evil.example`` is refused."""
MAX_BODY_BYTES = 64 << 10
"""Chosen: no API request needs more."""
READING = ("GET", "HEAD")


class Guard:
    """ASGI middleware. With `local` (the Unix socket) there is no Host check; with `exposed` (an address
    others can reach anyway) this machine's name is accepted in any DNS zone."""

    def __init__(
        self, app: ASGIApp, own: Own, names: Iterable[str] = (), *, local: bool = False, exposed: bool = False
    ) -> None:
        self.app = app
        self.own = own
        self._local = local
        self._names = own_names() | {name.lower() for name in names}
        self._zone_names = self._names - {"localhost"} if exposed else set()
        self._known: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
                self._count(scope, message["status"])
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            from starlette.responses import JSONResponse

            status, reason = refusal
            return await JSONResponse({"error": reason}, status)(scope, receive, counted)
        return await self.app(scope, receive, counted)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = scope["headers"]
        if _length(headers) > MAX_BODY_BYTES:
            return 413, f"a request body may have at most {MAX_BODY_BYTES} bytes"
        if self._local:
            return None
        hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
        host = hosts[0] if len(hosts) == 1 else ""
        if not self.allowed(host):
            return 403, f"the host name {host!r} is not one of this machine: allow it with --allow-host"
        if _is_foreign(dict(headers), host, reading=scope["method"] in READING):
            return 403, "requests from pages of other origins are refused"
        return None

    def allowed(self, host: str) -> bool:
        """IP addresses, names of this machine, and names allowed in the settings."""
        if host in self._known:
            return True
        name = host_name(host)
        fine = name in self._names or name.partition(".")[0] in self._zone_names or _is_address(name)
        if fine and len(self._known) < 64:
            self._known.add(host)
        return fine

    def _count(self, scope: Scope, status: int) -> None:
        route = scope.get("route")
        key = (getattr(route, "path", "other"), str(status))
        self.own.requests[key] = self.own.requests.get(key, 0) + 1


def own_names() -> set[str]:
    name = socket.gethostname().lower()
    return {"localhost", name, name.partition(".")[0]} - {""}


def host_name(host: str) -> str:
    """The Host header without its port: ``[::1]:10835`` → ``::1``; empty if it is not valid."""
    found = HOST.fullmatch(host)
    return (found[1] or found[2]).lower() if found else ""


def _length(headers: Iterable[tuple[bytes, bytes]]) -> int:
    """Announced length of the body; no route reads chunks of unknown length."""
    return max((int(value) for name, value in headers if name == b"content-length"), default=0)


def _is_foreign(headers: dict[bytes, bytes], host: str, *, reading: bool) -> bool:
    """Sent by a page of another origin. Following a link to read is fine; sending a form is not."""
    if headers.get(b"sec-fetch-site") == b"cross-site":
        return not (reading and headers.get(b"sec-fetch-mode") == b"navigate")
    origin = headers.get(b"origin")
    return not reading and origin is not None and origin.decode("latin-1").partition("://")[2] != host


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
