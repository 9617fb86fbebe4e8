"""The daemon: a thread that ticks, an event loop that serves, and an orderly end of both."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import uvicorn

from monitor import __version__
from monitor.claims import DirectoryLock, bind_tcp, bind_unix, release_unix
from monitor.errors import EXIT_FAILED, EXIT_OK
from monitor.pipeline import Pipeline
from monitor.settings import Settings
from monitor.snapshot import Snapshot
from monitor.web.app import create_app
from monitor.web.guard import Guard
from monitor.web.service import Service
from monitor.web.webconfig import NO_WEB_CONFIG, WebConfig, load_web_config

EXIT_SECONDS = 1.5
"""After this long the process ends even if the driver holds a thread."""
KEEP_ALIVE_SECONDS = 75
"""Longer than a usual scrape interval, so that a scraper keeps its connection."""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

if TYPE_CHECKING:
    from monitor.store.store import Store

log = logging.getLogger("gpumon")


def next_due(due: float, now: float, interval: float) -> tuple[float, int]:
    """When the tick after the one that was due at `due` is to begin, always on the same grid, and how
    many ticks are left out because their time has passed."""
    following = due + interval
    if now <= following:
        return following, 0
    missed = int((now - following) // interval) + 1
    return following + missed * interval, missed


class Ticker(threading.Thread):
    """Calls the pipeline on a fixed grid. A tick that takes too long, or a suspended machine, costs
    ticks (counted); they are never made up for."""

    def __init__(self, pipeline: Pipeline, service: Service, died: Callable[[], object]) -> None:
        super().__init__(name="gpumon-tick", daemon=True)
        self.failed = False
        self._pipeline = pipeline
        self._service = service
        self._died = died
        self._stop_event = threading.Event()

    def run(self) -> None:
        """A daemon that cannot tick must end, not serve old data: whoever runs it starts it anew."""
        try:
            self._tick_until_stopped(self._pipeline.settings.interval)
        finally:
            if not self._stop_event.is_set():
                self.failed = True
                self._died()

    def _tick_until_stopped(self, interval: float) -> None:
        due = time.monotonic()
        while not self._stop_event.is_set():
            self._service.feed.publish(self._pipeline.tick())
            due, missed = next_due(due, time.monotonic(), interval)
            self._service.own.missed_ticks += missed
            self._stop_event.wait(max(0.0, due - time.monotonic()))

    def stop(self) -> None:
        self._stop_event.set()


class Server(uvicorn.Server):
    """Sleeps until it is told to stop, where uvicorn would wake ten times a second to look."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.done = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        await self.done.wait()


def run_daemon(settings: Settings) -> int:
    """Serve until a signal. Raises `UserError` when something is in the way."""
    web = load_web_config(settings.web_config) if settings.web_config else NO_WEB_CONFIG
    with contextlib.ExitStack() as stack:
        for directory in settings.dir:
            stack.callback(DirectoryLock(directory).release)
        unix = _claim_unix(settings.socket, stack)
        tcp = stack.enter_context(bind_tcp(settings.listen)) if settings.listen else None
        store = _open_store(settings, stack)
        pipeline = Pipeline(settings, store=store)
        service = Service(settings, store=store)
        return asyncio.run(_serve(pipeline, service, web, tcp, unix))


def _open_store(settings: Settings, stack: contextlib.ExitStack) -> Store | None:
    """The history; one that cannot be kept is said by the store and costs nothing else."""
    if settings.store is None:
        return None
    from monitor.store.store import Store

    store = Store(settings.store, max_bytes=settings.store_max_size, max_age=settings.store_max_age)
    stack.callback(store.close)
    return store


def _claim_unix(path: Path | None, stack: contextlib.ExitStack) -> socket.socket | None:
    if path is None:
        return None
    bound = stack.enter_context(bind_unix(path))
    stack.callback(release_unix, path, path.lstat().st_ino)
    return bound


async def _serve(
    pipeline: Pipeline,
    service: Service,
    web: WebConfig,
    tcp: socket.socket | None,
    unix: socket.socket | None,
) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop.set)
    service.feed.attach(loop)
    service.own.started = time.time()
    servers = _servers(service, web, tcp, unix)
    ticker = Ticker(pipeline, service, partial(loop.call_soon_threadsafe, stop.set))
    ticker.start()
    running = [asyncio.create_task(server.serve([bound])) for server, bound in servers]
    announcing = asyncio.create_task(_announce(service, pipeline.settings, tcp, web))
    await asyncio.wait([asyncio.create_task(stop.wait()), *running], return_when=asyncio.FIRST_COMPLETED)
    announcing.cancel()
    _insure_exit(pipeline.settings.socket)
    log.info("stopping")
    notify("STOPPING=1")
    ticker.stop()
    service.feed.close()
    for server, _ in servers:
        server.done.set()
    await asyncio.gather(*running)
    await asyncio.to_thread(ticker.join, 0.5)
    pipeline.close()
    return EXIT_FAILED if ticker.failed else EXIT_OK


def _servers(
    service: Service, web: WebConfig, tcp: socket.socket | None, unix: socket.socket | None
) -> list[tuple[Server, socket.socket]]:
    """One server per way in: TLS and passwords are for TCP, file permissions guard the socket."""
    app = create_app(service)
    servers = []
    if tcp is not None:
        exposed = not str(tcp.getsockname()[0]).startswith(("127.", "::1"))
        guarded = Guard(web.protect(app), service.own, service.settings.allow_host, exposed=exposed)
        servers.append((Server(_config(guarded, web)), tcp))
    if unix is not None:
        servers.append((Server(_config(Guard(app, service.own, local=True), NO_WEB_CONFIG)), unix))
    return servers


def _config(app: Guard, web: WebConfig) -> uvicorn.Config:
    context = web.context() if web.tls else None
    return uvicorn.Config(
        app,
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


async def _announce(service: Service, settings: Settings, tcp: socket.socket | None, web: WebConfig) -> None:
    """Once there is a first snapshot: one line that says what is watched, and ready for systemd."""
    served = await service.feed.after(0, 60.0)
    if served is None:
        return
    where = [_url(tcp, web)] if tcp else []
    where += [f"unix:{settings.socket}"] if settings.socket else []
    log.info("gpumon %s, pid %d: %s", __version__, os.getpid(), watched(served.snapshot))
    place = " and ".join(where) or "nothing"
    log.info("serving on %s, every %g s, runs in %s", place, settings.interval, _paths(settings))
    gc.collect()
    gc.freeze()
    notify(f"READY=1\nSTATUS={watched(served.snapshot)}")


def _url(tcp: socket.socket, web: WebConfig) -> str:
    host, port = tcp.getsockname()[:2]
    return f"{'https' if web.tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _paths(settings: Settings) -> str:
    return ", ".join(map(str, settings.dir))


def watched(snapshot: Snapshot) -> str:
    """What is watched, in one sentence; what is simulated says so loudly."""
    source, count = snapshot.source, len(snapshot.gpus)
    gpus = f"{count} GPU{'' if count == 1 else 's'}"
    if source.kind == "simulated":
        return f"SIMULATED readings, not real ones: {gpus} and the host"
    if source.kind == "none":
        return f"the host alone, no GPU: {source.detail or 'no reason given'}"
    trouble = "" if source.ok else f" (not answering: {source.detail})"
    return f"{gpus} through NVML, driver {source.driver_version or 'unknown'}{trouble}, and the host"


def _insure_exit(unix: Path | None) -> None:
    """A driver that hangs in a thread must not hold the process: history is crash-safe."""

    def leave() -> None:
        log.warning("a thread does not end, leaving it behind")
        if unix is not None:
            unix.unlink(missing_ok=True)
        os._exit(EXIT_OK)

    timer = threading.Timer(EXIT_SECONDS, leave)
    timer.daemon = True
    timer.start()


def notify(state: str) -> None:
    """Tell systemd, when it started us and wants to know (Type=notify)."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.sendto(state.encode(), address.replace("@", "\0", 1) if address[0] == "@" else address)


def set_up_logging(verbose: bool) -> None:
    """To stderr; under systemd with its priority prefix, since the journal adds the time itself."""
    journal = "JOURNAL_STREAM" in os.environ
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _JournalFormatter() if journal else logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    )
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


class _JournalFormatter(logging.Formatter):
    PRIORITIES: ClassVar = {"DEBUG": 7, "INFO": 6, "WARNING": 4, "ERROR": 3, "CRITICAL": 2}

    def format(self, record: logging.LogRecord) -> str:
        return f"<{self.PRIORITIES.get(record.levelname, 6)}>{super().format(record)}"
