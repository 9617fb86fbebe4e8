"""One client connection: its requests have a deadline, and the number of connections is limited.

A request must be complete within seconds of its first byte, and the client must read what we send. With too
many connections, the one idle for longest is dropped: a crowd of silent clients locks nobody out.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from monitor.web.peer import Peer

MAX_CONNECTIONS = 512
"""Per endpoint: far more than there are pages and scrapers, far fewer than the limit on open files."""
REQUEST_SECONDS = 10.0
"""From the first byte (or from connecting) to the end of the request, including its body."""
WRITE_SECONDS = 10.0
"""How long a client may leave our data unread once the buffers are full."""
MAX_HEAD_BYTES = 16 << 10
"""The limit common servers use."""

WAITS_FOR_CLIENT = (h11.IDLE, h11.SEND_BODY)


class Connection(H11Protocol):
    """uvicorn's, with timeouts, a place in the idle queue, and its peer in every request's scope."""

    def __init__(self, *args: Any, idle: dict[Connection, None], **kwargs: Any) -> None:
        """`idle`: the endpoint's connections without a request in progress, longest idle first."""
        super().__init__(*args, **kwargs)
        self._idle = idle
        self._request_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, "peer": Peer(transport.get_extra_info("socket"))}
        self._start_request_timer()
        self._make_room()
        self._idle[self] = None

    def _make_room(self) -> None:
        """If no idle one can be dropped, uvicorn answers the newcomer with 503 (`limit_concurrency`)."""
        if len(self.connections) >= MAX_CONNECTIONS and self._idle:
            next(iter(self._idle)).abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state in WAITS_FOR_CLIENT:
            self._start_request_timer()
        else:
            self._stop_request_timer()
            self._idle.pop(self, None)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE:
            self._idle[self] = None
            if self.conn.trailing_data[0]:  # half of the next request came with this one
                self._start_request_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._idle.pop(self, None)
        self._stop_request_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def abort(self) -> None:
        """Abort instead of closing, which would wait for a client that does not read."""
        self._idle.pop(self, None)
        if self.transport is not None:
            self.transport.abort()

    def timeout_keep_alive_handler(self) -> None:
        self.abort()

    # ── Timers ──

    def _start_request_timer(self) -> None:
        if self._request_timer is None:
            self._request_timer = self.loop.call_later(REQUEST_SECONDS, self.abort)

    def _stop_request_timer(self) -> None:
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(WRITE_SECONDS, self.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_write_timer()

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
