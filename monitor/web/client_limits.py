"""Limits on concurrent requests and streams, shared fairly: one client cannot take them all."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from monitor.web.peer import peer_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_REQUESTS = 40
"""Concurrent requests per endpoint."""
MAX_REQUESTS_EACH = 20
MAX_STREAMS = 64
MAX_STREAMS_EACH = 32
"""Chosen: a page uses one stream, a scraper one request; one client may take half of them."""
RETRY_SECONDS = "1"
EVENT_STREAM = b"text/event-stream"


class InFlight:
    """ASGI middleware: limits concurrent requests, at most half of them from one client. A live stream counts
    until it has begun; from then on `Streams` counts it."""

    def __init__(self, app: ASGIApp, *, most: int = MAX_REQUESTS, each: int = MAX_REQUESTS_EACH) -> None:
        self.app = app
        self._most = most
        self._each = each
        self._taken: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        client = peer_of(scope).client
        if self._taken.total() >= self._most or self._taken[client] >= self._each:
            return await _refuse(scope, receive, send)
        place = _Place(self._taken, client)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_stream(message):
                place.leave()
            await send(message)

        try:
            return await self.app(scope, receive, watched)
        finally:
            place.leave()


class _Place:
    """Taken on construction; given back once."""

    def __init__(self, taken: Counter[str], client: str) -> None:
        self._taken: Counter[str] | None = taken
        self._client = client
        taken[client] += 1

    def leave(self) -> None:
        taken, self._taken = self._taken, None
        if taken is None:
            return
        taken[self._client] -= 1
        if not taken[self._client]:
            del taken[self._client]


def _is_stream(message: Message) -> bool:
    kinds = [value for name, value in message["headers"] if name == b"content-type"]
    return any(kind.startswith(EVENT_STREAM) for kind in kinds)


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    from starlette.responses import JSONResponse

    text = "too many concurrent requests: try again in a second"
    await JSONResponse({"error": text}, 503, {"retry-after": RETRY_SECONDS})(scope, receive, send)


class Stream:
    """One client's live stream; `ended` when another client got its place."""

    def __init__(self, client: str) -> None:
        self.client = client
        self.ended = False


class Streams:
    """The open live streams. When all places are taken, the client with the most gives one up."""

    def __init__(self, most: int = MAX_STREAMS, each: int = MAX_STREAMS_EACH) -> None:
        self._most = most
        self._each = each
        self._open: list[Stream] = []

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, client: str) -> Stream | None:
        """None: no place for this client."""
        counts = Counter(one.client for one in self._open)
        if counts[client] >= self._each:
            return None
        if len(self._open) >= self._most and not self._free_one(counts, client):
            return None
        stream = Stream(client)
        self._open.append(stream)
        return stream

    def _free_one(self, counts: Counter[str], client: str) -> bool:
        (largest, count) = counts.most_common(1)[0]
        if count <= counts[client] + 1:
            return False
        oldest = next(one for one in self._open if one.client == largest)
        self.end(oldest)
        return True

    def end(self, stream: Stream) -> None:
        stream.ended = True
        if stream in self._open:
            self._open.remove(stream)
