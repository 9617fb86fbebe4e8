"""Around every route: who may ask, what browsers are told, and the count of answers.

A page on another origin must not read what runs here. There are no CORS headers, and a request whose
Host is not a name of this machine is refused, because that is what DNS rebinding looks like.
"""

from __future__ import annotations

import ipaddress
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


class Guard:
    """ASGI middleware. With `local` (the Unix socket) there is no Host check; with `exposed` (an
    address others can reach anyway) this machine's name counts in any DNS zone."""

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

        reason = self._refusal(scope)
        if reason is not None:
            from starlette.responses import JSONResponse

            return await JSONResponse({"error": reason}, 403)(scope, receive, counted)
        return await self.app(scope, receive, counted)

    def _refusal(self, scope: Scope) -> str | None:
        if self._local:
            return None
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        if not self.allowed(host):
            return f"the host name {host!r} is not one of this machine: allow it with --allow-host"
        if headers.get(b"sec-fetch-site") == b"cross-site" and headers.get(b"sec-fetch-mode") != b"navigate":
            return "pages of other origins may not read this"
        return None

    def allowed(self, host: str) -> bool:
        """IP addresses, names of this machine, and names the settings allow."""
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
    """The Host header without its port: ``[::1]:9835`` → ``::1``."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower().rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
