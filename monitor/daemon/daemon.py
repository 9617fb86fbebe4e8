"""The daemon: a thread that ticks, an event loop that serves, and an orderly shutdown of both."""

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
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from monitor import __version__
from monitor.daemon.bind import bind_tcp, bind_unix, release_unix
from monitor.daemon.exposure import warn_if_exposed
from monitor.daemon.lock import DirectoryLock
from monitor.daemon.pushing import make_pusher
from monitor.daemon.serving import make_servers
from monitor.host.limits import raise_descriptor_limit, steady_memory
from monitor.model.errors import EXIT_FAILED, EXIT_OK
from monitor.model.settings import Settings
from monitor.model.snapshot import Snapshot
from monitor.model.units import seconds
from monitor.pipeline.pipeline import Pipeline
from monitor.web.service import Service
from monitor.web.webconfig import NO_WEB_CONFIG, WebConfig, load_web_config

EXIT_SECONDS = 1.5
"""After this long the process exits even if the driver holds a thread."""
GATHER_SECONDS = 5.0
"""Readings are written to the history this often: one transaction per tick was a fifth of an idle daemon's
cost. Steps are written as they are read."""
SWITCH_SECONDS = 0.001
"""How long the tick thread may keep the serving thread waiting: a fifth of Python's default."""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

if TYPE_CHECKING:
    from monitor.daemon.fleet_ticks import FleetTicks
    from monitor.store.store import Store

About = Callable[[Snapshot], str]
"""Says what is watched, in one sentence."""

log = logging.getLogger("gpumon")


def next_due(due: float, now: float, interval: float) -> tuple[float, int]:
    """When the tick after the one due at `due` begins, always on the same grid, and how many ticks are
    skipped because their time has passed."""
    following = due + interval
    if now <= following:
        return following, 0
    missed = int((now - following) // interval) + 1
    return following + missed * interval, missed


class Ticks(Protocol):
    """Where snapshots come from: a `Pipeline`, or a Prometheus."""

    settings: Settings

    def tick(self) -> Snapshot: ...

    def close(self) -> None: ...


class Ticker(threading.Thread):
    """Calls the pipeline on a fixed grid. If a tick takes too long or the machine is suspended, ticks are
    skipped and counted, never made up for."""

    def __init__(self, pipeline: Ticks, service: Service, died: Callable[[], object]) -> None:
        super().__init__(name="gpumon-tick", daemon=True)
        self.failed = False
        self._pipeline = pipeline
        self._service = service
        self._died = died
        self._stop_event = threading.Event()

    def run(self) -> None:
        """A daemon that cannot tick must exit rather than serve old data; its supervisor restarts it."""
        try:
            self._tick_until_stopped(self._pipeline.settings.interval)
        finally:
            if not self._stop_event.is_set():
                self.failed = True
                self._died()

    def _tick_until_stopped(self, interval: float) -> None:
        due = time.monotonic()
        while not self._stop_event.is_set():
            snapshot = self._pipeline.tick()
            self._service.metrics.prepare(snapshot)
            self._service.feed.publish(snapshot)
            due, missed = next_due(due, time.monotonic(), interval)
            self._service.own.missed_ticks += missed
            self._stop_event.wait(max(0.0, due - time.monotonic()))

    def stop(self) -> None:
        self._stop_event.set()


def run_daemon(settings: Settings, fleet: FleetTicks | None = None) -> int:
    """Serve until a signal: this machine, or those of a `fleet`. Raises `UserError` if another daemon is
    already running."""
    web = load_web_config(settings.web_config) if settings.web_config else NO_WEB_CONFIG
    raise_descriptor_limit()
    steady_memory()
    sys.setswitchinterval(SWITCH_SECONDS)
    with contextlib.ExitStack() as stack:
        for directory in settings.dir:
            stack.callback(DirectoryLock(directory).release)
        unix = _claim_unix(settings, stack)
        tcp = stack.enter_context(bind_tcp(settings.listen)) if settings.listen else None
        warn_if_exposed(settings, web)
        store = _open_store(settings, stack)
        pipeline = fleet or Pipeline(settings, store=store)
        service = Service(settings, store=store, exports=fleet is None)
        pusher = make_pusher(service, settings)
        if pusher is not None:
            stack.callback(pusher.stop)
            pusher.start()
        about = fleet.watched if fleet else watched
        return asyncio.run(_serve(pipeline, service, about, web, tcp, unix))


def _open_store(settings: Settings, stack: contextlib.ExitStack) -> Store | None:
    """The history; the store itself reports when it cannot be written, and nothing else is affected."""
    if settings.store is None:
        return None
    from monitor.store.store import Store

    store = Store(
        settings.store,
        max_bytes=settings.store_max_size,
        max_age=settings.store_max_age,
        gather_seconds=GATHER_SECONDS,
    )
    stack.callback(store.close)
    return store


def _claim_unix(settings: Settings, stack: contextlib.ExitStack) -> socket.socket | None:
    path = settings.socket
    if path is None:
        return None
    bound = stack.enter_context(bind_unix(path, settings.socket_mode))
    stack.callback(release_unix, path, path.lstat().st_ino)
    return bound


async def _serve(
    pipeline: Ticks,
    service: Service,
    about: About,
    web: WebConfig,
    tcp: socket.socket | None,
    unix: socket.socket | None,
) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop.set)
    service.feed.attach(loop)
    servers = make_servers(service, web, tcp, unix)
    ticker = Ticker(pipeline, service, partial(loop.call_soon_threadsafe, stop.set))
    ticker.start()
    running = [asyncio.create_task(server.serve([bound])) for server, bound in servers]
    announcing = asyncio.create_task(_announce(service, about, tcp, web))
    await asyncio.wait([asyncio.create_task(stop.wait()), *running], return_when=asyncio.FIRST_COMPLETED)
    announcing.cancel()
    _exit_in_any_case(pipeline.settings.socket)
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


async def _announce(service: Service, about: About, tcp: socket.socket | None, web: WebConfig) -> None:
    """Once there is a first snapshot: log what is watched, and tell systemd we are ready."""
    served = await service.feed.after(0, 60.0)
    if served is None:
        return
    settings, sentence = service.settings, about(served.snapshot)
    where = [_url(tcp, web)] if tcp else []
    where += [f"unix:{settings.socket}"] if settings.socket else []
    log.info("gpumon %s, pid %d: %s", __version__, os.getpid(), sentence)
    place = " and ".join(where) or "nothing"
    every = seconds(settings.interval)
    log.info("serving on %s, every %s%s", place, every, _paths(settings))
    gc.collect()
    gc.freeze()
    notify(f"READY=1\nSTATUS={sentence}")


def _url(tcp: socket.socket, web: WebConfig) -> str:
    host, port = tcp.getsockname()[:2]
    return f"{'https' if web.tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _paths(settings: Settings) -> str:
    return f", runs in {', '.join(map(str, settings.dir))}" if settings.dir else ""


def watched(snapshot: Snapshot) -> str:
    """What is watched, in one sentence; simulated readings are announced first."""
    source, count = snapshot.source, len(snapshot.gpus)
    gpus = f"{count} GPU{'' if count == 1 else 's'}"
    if source.kind == "simulated":
        return f"SIMULATED readings, not real ones: {gpus} and the host"
    if source.kind == "none":
        return f"the host alone, no GPU: {source.detail or 'no reason given'}"
    trouble = "" if source.ok else f" (not answering: {source.detail})"
    return f"{gpus} through NVML, driver {source.driver_version or 'unknown'}{trouble}, and the host"


def _exit_in_any_case(unix: Path | None) -> None:
    """A driver call that hangs in a thread must not keep the process alive; the history is crash-safe."""

    def leave() -> None:
        log.warning("a thread did not end; exiting without it")
        if unix is not None:
            unix.unlink(missing_ok=True)
        os._exit(EXIT_OK)

    timer = threading.Timer(EXIT_SECONDS, leave)
    timer.daemon = True
    timer.start()


def notify(state: str) -> None:
    """Notify systemd, if it started us with Type=notify."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.sendto(state.encode(), address.replace("@", "\0", 1) if address[0] == "@" else address)
