"""The daemon's HTTP servers: one per endpoint (TCP, Unix socket), serving the same application."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from functools import partial
from typing import cast

import uvicorn

from monitor.daemon.bind import BACKLOG
from monitor.host.listeners import is_loopback
from monitor.web.app import create_app
from monitor.web.client_limits import InFlight
from monitor.web.connection import MAX_CONNECTIONS, MAX_HEAD_BYTES, Connection
from monitor.web.guard import Guard
from monitor.web.service import Service
from monitor.web.webconfig import NO_WEB_CONFIG, WebConfig

KEEP_ALIVE_SECONDS = 75
"""Longer than a usual scrape interval, so that scrapers keep their connection."""


class Server(uvicorn.Server):
    """Sleeps until told to stop, where uvicorn would wake ten times a second to check."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.done = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        await self.done.wait()


def make_servers(
    service: Service, web: WebConfig, tcp: socket.socket | None, unix: socket.socket | None
) -> list[tuple[Server, socket.socket]]:
    """One server per endpoint: TLS and passwords are for TCP; file permissions guard the socket."""
    app = create_app(service)
    servers = []
    if tcp is not None:
        exposed = not is_loopback(str(tcp.getsockname()[0]))
        inside = InFlight(web.protect(app))
        guarded = Guard(inside, service.own, service.settings.allow_host, exposed=exposed)
        servers.append((Server(_config(guarded, web)), tcp))
    if unix is not None:
        guarded = Guard(InFlight(app), service.own, local=True)
        servers.append((Server(_config(guarded, NO_WEB_CONFIG)), unix))
    return servers


def _config(app: Guard, web: WebConfig) -> uvicorn.Config:
    context = web.context() if web.tls else None
    return uvicorn.Config(
        app,
        http=cast("type[asyncio.Protocol]", partial(Connection, idle={})),
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        limit_concurrency=MAX_CONNECTIONS,
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        date_header=False,
        server_header=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        ssl_context_factory=(lambda config, default: context) if context else None,
    )
