"""Basic auth on the TCP port. bcrypt is slow on purpose, so its cost is bounded: one check at a time, a short
queue, cached results, and few failures per minute from one client."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import os
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from monitor.web.peer import peer_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

REMEMBERED = 1024
"""At most this many right and wrong logins, and clients with failures, are remembered."""
MAX_WAITING = 8
"""Chosen: checks in the queue; each takes bcrypt a good part of a second on a slow machine."""
FAILURES = 10
FAILURES_SECONDS = 60.0
"""How many failures a client may have in this time; after that it is told to wait."""


class BasicAuth:
    """ASGI middleware that asks for a user and password."""

    def __init__(self, app: ASGIApp, users: Mapping[str, bytes]) -> None:
        self.app = app
        self._passwords = Passwords(users)
        self._secret = os.urandom(32)
        self._known: OrderedDict[bytes, bool] = OrderedDict()
        self._failures = Failures()
        self._checking = asyncio.Lock()
        self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope["headers"]).get(b"authorization", b"")
        status, retry = await self._judge(given, peer_of(scope).client)
        if status == 200:
            return await self.app(scope, receive, send)
        from starlette.responses import JSONResponse

        return await JSONResponse({"error": _SAID[status]}, status, _headers(status, retry))(
            scope, receive, send
        )

    async def _judge(self, given: bytes, client: str) -> tuple[int, float]:
        """Status of the response, and where retrying helps, the seconds to wait before it."""
        login = _login(given)
        if login is None:
            return 401, 0.0
        mark = hmac.digest(self._secret, given, hashlib.sha256)
        if mark not in self._known:
            wait = self._failures.wait(client, time.monotonic())
            if wait > 0:
                return 429, wait
            if self._waiting >= MAX_WAITING:
                return 503, 1.0
            self._failures.note(client, time.monotonic())  # beforehand: many at once must not get past it
            await self._check(mark, login)
            if self._known.get(mark):
                self._failures.take_back(client)
        return (200 if self._known.get(mark) else 401), 0.0

    async def _check(self, mark: bytes, login: tuple[str, bytes]) -> None:
        self._waiting += 1
        try:
            async with self._checking:
                if mark not in self._known:
                    remember(self._known, mark, await asyncio.to_thread(self._passwords.fit, *login))
        finally:
            self._waiting -= 1


_SAID = {
    401: "user or password missing or wrong",
    429: "too many wrong passwords from here",
    503: "too many concurrent logins: try again in a second",
}


def _headers(status: int, retry: float) -> dict[str, str]:
    if status == 401:
        return {"www-authenticate": 'Basic realm="gpumon", charset="UTF-8"'}
    return {"retry-after": str(max(1, round(retry)))}


def remember(known: OrderedDict[bytes, bool], mark: bytes, fits: bool) -> None:
    """Wrong logins, which anybody can make in any number, never push out right ones."""
    known[mark] = fits
    if len(known) > REMEMBERED:
        del known[next((one for one, right in known.items() if not right), next(iter(known)))]


def _login(given: bytes) -> tuple[str, bytes] | None:
    scheme, _, encoded = given.partition(b" ")
    if scheme.lower() != b"basic":
        return None
    try:
        user, colon, password = base64.b64decode(encoded, validate=True).partition(b":")
        return (user.decode(), password) if colon else None
    except (binascii.Error, UnicodeDecodeError):
        return None


class Passwords:
    """Checks one login. Unknown users and users with a cheap hash take as long as the most expensive hash, so
    timing does not reveal which names exist."""

    def __init__(self, users: Mapping[str, bytes]) -> None:
        self._users = users
        self._most = max(map(cost_of, users.values()), default=0)

    def fit(self, user: str, password: bytes) -> bool:
        known = self._users.get(user)
        if known is None:
            _check(password, _dummy(self._most))
            return False
        fits = _check(password, known)
        for cost in range(cost_of(known), self._most):  # 2^c + 2^c + 2^(c+1) + … + 2^(most-1) = 2^most
            _check(password, _dummy(cost))
        return fits


def cost_of(hashed: bytes) -> int:
    """``$2b$12$…`` → 12: a check makes 2^12 rounds."""
    return int(hashed[4:6])


def _dummy(cost: int) -> bytes:
    return b"$2b$%02d$" % cost + b"." * 53


def _check(password: bytes, hashed: bytes) -> bool:
    import bcrypt

    try:
        return bcrypt.checkpw(password[:72], hashed)
    except ValueError:
        return False


class Failures:
    """Failed logins per client, as a bucket that drains over time."""

    def __init__(self) -> None:
        self._level: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Client → how full, and when."""

    def note(self, client: str, now: float) -> None:
        self._level[client] = (self._now(client, now) + 1.0, now)
        self._level.move_to_end(client)
        while len(self._level) > REMEMBERED:
            self._level.popitem(last=False)

    def take_back(self, client: str) -> None:
        level, when = self._level.get(client, (0.0, 0.0))
        self._level[client] = (max(0.0, level - 1.0), when)

    def wait(self, client: str, now: float) -> float:
        """Seconds until this client may try again; 0: now."""
        over = self._now(client, now) + 1.0 - FAILURES
        return max(0.0, over * FAILURES_SECONDS / FAILURES)

    def _now(self, client: str, now: float) -> float:
        level, when = self._level.get(client, (0.0, now))
        return max(0.0, level - (now - when) * FAILURES / FAILURES_SECONDS)
