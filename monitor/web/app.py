"""The routes: metrics, health, the live API and the page. History routes are in `api`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from monitor import __version__
from monitor.language import matching
from monitor.web.api import ENDPOINTS
from monitor.web.client_limits import RETRY_SECONDS, Stream, Streams
from monitor.web.live_page import live_page
from monitor.web.metrics import is_openmetrics, negotiate
from monitor.web.openapi import description
from monitor.web.pages import PAGES, page
from monitor.web.peer import peer_of
from monitor.web.privacy import Viewer
from monitor.web.service import Service

KEEPALIVE_SECONDS = 15.0
"""Chosen to be below the 30 to 60 seconds after which proxies close idle connections."""
JSON_TYPE = "application/json"


def create_app(service: Service) -> Starlette:
    """The application of one daemon."""
    get = [
        ("/metrics", metrics),
        ("/-/healthy", healthy),
        ("/-/ready", ready),
        ("/api/v1/snapshot", snapshot),
        ("/api/v1/stream", stream),
        ("/api/v1/openapi.json", openapi),
        ("/", live_page),
        ("/favicon.ico", no_icon),
    ]
    routes = [Route(path, answer, methods=["GET"]) for path, answer in get]
    routes += [Route(path, page(make), methods=["GET"]) for path, make in PAGES]
    routes += [Route(one.path, one.respond(), methods=list(one.methods)) for one in ENDPOINTS]
    handlers = {404: _error, 405: _error, 500: _failure}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.state.service = service
    return app


async def _error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = (
        f"no such path: {request.url.path}"
        if error.status_code == 404
        else f"{request.method} is not allowed here"
    )
    return JSONResponse({"error": text}, error.status_code, headers=error.headers)


async def _failure(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "gpumon failed to answer; its log says why"}, 500)


def accepts_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


async def metrics(request: Request) -> Response:
    """The newest snapshot as Prometheus text or OpenMetrics, whichever the client prefers."""
    service: Service = request.app.state.service
    served = service.feed.latest
    if served is None:
        return JSONResponse({"error": "no snapshot has been made yet"}, 503)
    kind = negotiate(request.headers.get("accept", ""))
    page = service.metrics.page(served.snapshot, openmetrics=is_openmetrics(kind))
    return _bytes(page.body(packed := accepts_gzip(request)), kind, packed)


def _bytes(body: bytes, kind: str, packed: bool) -> Response:
    headers = {"vary": "Accept, Accept-Encoding", "cache-control": "no-store", "content-type": kind}
    if packed:
        headers["content-encoding"] = "gzip"
    return Response(body, headers=headers)


async def no_icon(request: Request) -> Response:
    """Browsers request an icon unasked."""
    return Response(status_code=204, headers={"cache-control": "max-age=86400"})


async def healthy(request: Request) -> Response:
    """The process is alive and answers."""
    return JSONResponse(
        {"status": "healthy", "program": "gpumon", "version": __version__, "pid": os.getpid()}
    )


async def ready(request: Request) -> Response:
    """The data is fresh; otherwise 503 and the reason."""
    service: Service = request.app.state.service
    reason = service.not_ready()
    if reason:
        return JSONResponse({"status": "not ready", "error": reason}, 503)
    return JSONResponse({"status": "ready"})


async def snapshot(request: Request) -> Response:
    service: Service = request.app.state.service
    served = service.feed.latest
    if served is None:
        return JSONResponse({"error": "no snapshot has been made yet"}, 503)
    view = served.view(service.viewer(request))
    return _bytes(view.json(packed := accepts_gzip(request)), JSON_TYPE, packed)


async def openapi(request: Request) -> Response:
    """This API, described for programs."""
    return Response(description(), media_type=JSON_TYPE)


async def stream(request: Request) -> Response:
    """Server-sent events, one per snapshot; the newest is sent at once. With `?lang=zh` the findings are in
    Chinese, for the page."""
    service: Service = request.app.state.service
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    if request.method == "HEAD":
        return Response(media_type="text/event-stream", headers=headers)
    place = service.streams.begin(peer_of(request.scope).client)
    if place is None:
        text = f"{len(service.streams)} clients are already following the stream"
        return JSONResponse({"error": text}, 503, {"retry-after": RETRY_SECONDS})
    language = matching(request.query_params.get("lang", ""))
    events = _events(service, place, service.viewer(request), language)
    return EventStream(service.streams, place, events, headers)


class EventStream(StreamingResponse):
    """Gives its place back however it ends, even if it never began."""

    def __init__(
        self, streams: Streams, place: Stream, events: AsyncIterator[bytes], headers: dict[str, str]
    ) -> None:
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._streams, self._place = streams, place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.end(self._place)


async def _events(service: Service, place: Stream, viewer: Viewer, language: str) -> AsyncIterator[bytes]:
    seq = 0
    while not (service.feed.closed or place.ended):
        served = await service.feed.after(seq, KEEPALIVE_SECONDS)
        if served is not None and served.snapshot.seq != seq:
            seq = served.snapshot.seq
            yield served.view(viewer).event(language)
        elif not service.feed.closed:
            yield b": waiting for the next snapshot\n\n"
