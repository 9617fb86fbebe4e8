"""Talks to a daemon over TCP or its Unix socket, using only the standard library.

Every failure a user can do something about is a `UserError` naming the address that was tried.
"""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

from monitor.model.address import resolve
from monitor.model.errors import EXIT_UNREACHABLE, UserError
from monitor.model.snapshot import SchemaError, Snapshot, decode

TIMEOUT_SECONDS = 5.0
"""Our choice: a daemon answers within milliseconds unless the machine is in trouble."""
RECONNECT_SECONDS = (0.2, 0.5, 1.0, 2.0)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Client:
    """One daemon. Keeps a connection open between requests; not thread-safe."""

    def __init__(self, url: str | None = None, *, timeout: float = TIMEOUT_SECONDS) -> None:
        self.address = resolve(url)
        self.timeout = timeout
        self._connection: http.client.HTTPConnection | None = None

    @property
    def url(self) -> str:
        return self.address.url

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def snapshot(self) -> Snapshot:
        """The daemon's latest snapshot."""
        return self._decode(self.get("/api/v1/snapshot"))

    def get_json(self, path: str) -> Any:
        """Any answer of the API, decoded."""
        return json.loads(self.get(path))

    def post_json(self, path: str) -> Any:
        """The same for a request that may write something."""
        return json.loads(self.get(path, method="POST"))

    def get(self, path: str, *, method: str = "GET") -> bytes:
        """The response body; any status other than 200 is a `UserError` with the daemon's own words."""
        fresh = self._connection is None
        try:
            return self._ask(path, method)
        except (http.client.HTTPException, OSError) as error:
            self.close()
            if fresh:
                raise self._unreachable(error) from None
        try:  # the kept connection was dead: the daemon restarted
            return self._ask(path, method)
        except (http.client.HTTPException, OSError) as error:
            self.close()
            raise self._unreachable(error) from None

    def _ask(self, path: str, method: str) -> bytes:
        if self._connection is None:
            self._connection = self._open(self.timeout)
        self._connection.request(method, quote(path, safe="/?&=%:,+-._~"), headers=self._headers())
        response = self._connection.getresponse()
        body = response.read()
        self._check(response.status, body, path)
        return body

    def stream(self, *, reconnect: bool = True) -> Iterator[Snapshot]:
        """Snapshots as they are made. If the daemon goes away, waits for it (unless `reconnect` is off, or it
        never answered): the caller sees the gap in the snapshots' times."""
        attempt = 0
        answered = False
        while True:
            try:
                for snapshot in self._stream_once():
                    answered, attempt = True, 0
                    yield snapshot
            except (http.client.HTTPException, OSError) as error:
                if not (reconnect and answered):
                    raise self._unreachable(error) from None
            if not reconnect:
                return
            time.sleep(RECONNECT_SECONDS[min(attempt, len(RECONNECT_SECONDS) - 1)])
            attempt += 1

    def _stream_once(self) -> Iterator[Snapshot]:
        connection = self._open(max(self.timeout, 30.0))
        try:
            connection.request("GET", "/api/v1/stream", headers=self._headers())
            response = connection.getresponse()
            if response.status != 200:
                self._check(response.status, response.read(), "/api/v1/stream")
            for line in response:
                if line.startswith(b"data:"):
                    yield self._decode(line[5:].strip())
        finally:
            connection.close()

    def _open(self, timeout: float) -> http.client.HTTPConnection:
        address = self.address
        if address.path is not None:
            return _UnixConnection(address.path, timeout)
        if address.tls:
            return http.client.HTTPSConnection(address.host, address.port, timeout=timeout)
        return http.client.HTTPConnection(address.host, address.port, timeout=timeout)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": self.address.authorization} if self.address.authorization else {}

    def _decode(self, body: bytes) -> Snapshot:
        try:
            return decode(body)
        except SchemaError as error:
            raise UserError(f"{self.url}: {error}", code=EXIT_UNREACHABLE) from None

    def _check(self, status: int, body: bytes, path: str) -> None:
        if status == 200:
            return
        if status == 401:
            raise UserError(f"{self.url} requires a password", hint="use https://USER:PASSWORD@HOST:PORT")
        said = _said(body)
        code = EXIT_UNREACHABLE if status >= 500 else 2
        raise UserError(f"{self.url}{path} answered {status}{f': {said}' if said else ''}", code=code)

    def _unreachable(self, error: Exception) -> UserError:
        reason = (
            (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
        )
        return UserError(
            f"no gpumon daemon answers at {self.url} ({reason})",
            hint="start one with: gpumon daemon",
            code=EXIT_UNREACHABLE,
        )


def _said(body: bytes) -> str:
    """The error sentence of an API answer; empty if it is not one of ours."""
    try:
        answer = json.loads(body)
    except ValueError:
        return ""
    return str(answer.get("error", "")) if isinstance(answer, dict) else ""
