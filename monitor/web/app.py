"""The routes: metrics, health, the live API and the page. History routes are in `api`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from monitor import __version__
from monitor.web import api
from monitor.web.live import live_page
from monitor.web.metrics import content_type, negotiate
from monitor.web.service import Service

KEEPALIVE_SECONDS = 15.0
MAX_STREAMS = 64
JSON_TYPE = "application/json"


def create_app(service: Service) -> Starlette:
    """The application of one daemon."""
    get = [
        ("/metrics", metrics),
        ("/-/healthy", healthy),
        ("/-/ready", ready),
        ("/api/v1/snapshot", snapshot),
        ("/api/v1/stream", stream),
        ("/", live_page),
        *api.ROUTES,
    ]
    handlers = {404: _error, 405: _error, 500: _failure}
    app = Starlette(routes=[_route(path, answer) for path, answer in get], exception_handlers=handlers)
    app.state.service = service
    return app


def _route(path: str, answer: Callable[[Request], Awaitable[Response]]) -> Route:
    return Route(path, answer, methods=["GET"])


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
    """The newest snapshot as Prometheus text or OpenMetrics, whichever the client likes better."""
    service: Service = request.app.state.service
    served = service.feed.latest
    if served is None:
        return JSONResponse({"error": "no snapshot has been made yet"}, 503)
    openmetrics = negotiate(request.headers.get("accept", ""))
    page = service.metrics.page(served.snapshot, openmetrics=openmetrics)
    return _bytes(page.body(packed := accepts_gzip(request)), content_type(openmetrics), packed)


def _bytes(body: bytes, kind: str, packed: bool) -> Response:
    headers = {"vary": "Accept, Accept-Encoding", "cache-control": "no-store", "content-type": kind}
    if packed:
        headers["content-encoding"] = "gzip"
    return Response(body, headers=headers)


async def healthy(request: Request) -> Response:
    """The process lives and answers."""
    return JSONResponse(
        {"status": "healthy", "program": "gpumon", "version": __version__, "pid": os.getpid()}
    )


async def ready(request: Request) -> Response:
    """The data is fresh; else 503 and why not."""
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
    return _bytes(served.json(packed := accepts_gzip(request)), JSON_TYPE, packed)


async def stream(request: Request) -> Response:
    """Server-sent events, each one a snapshot; the newest comes at once."""
    service: Service = request.app.state.service
    if service.own.streams >= MAX_STREAMS:
        return JSONResponse({"error": f"{MAX_STREAMS} clients follow the stream already"}, 503)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    if request.method == "HEAD":
        return Response(media_type="text/event-stream", headers=headers)
    return StreamingResponse(_events(service), media_type="text/event-stream", headers=headers)


async def _events(service: Service) -> AsyncIterator[bytes]:
    service.own.streams += 1
    seq = 0
    try:
        while not service.feed.closed:
            served = await service.feed.after(seq, KEEPALIVE_SECONDS)
            if served is not None and served.snapshot.seq != seq:
                seq = served.snapshot.seq
                yield served.event()
            elif not service.feed.closed:
                yield b": waiting for the next snapshot\n\n"
    finally:
        service.own.streams -= 1
