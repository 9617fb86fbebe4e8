"""Builds the app from the command-line options."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from monitor.client import Client
from monitor.model.address import parse
from monitor.model.errors import EXIT_UNREACHABLE, UserError
from monitor.model.settings import Settings
from monitor.tui import ascii as ascii_fallback
from monitor.tui import preferences
from monitor.tui.feed import Feed, Inbox, OwnFeed, PrometheusFeed, Readers, RemoteFeed, short
from monitor.tui.first_picture import FirstPicture, Look
from monitor.tui.frame import Hub
from monitor.tui.pick import Pick

if TYPE_CHECKING:
    from monitor.tui.app import GpumonApp
    from monitor.tui.archive import Archive

PATIENCE_SECONDS = 0.5
"""How long this machine's daemon may take to answer before we take readings ourselves."""

LONGEST_SECONDS = 30.0
"""How long a screenshot waits for a silent host."""
FIRST_SECONDS = 0.5
"""How long loading the app is delayed for the first reading."""


def build(
    hosts: Sequence[tuple[str, str | None]],
    settings: Settings,
    *,
    own: bool = False,
    theme: str | None = None,
    ascii_only: bool = False,
    readonly: bool = False,
    terminal: TextIO | None = None,
    fleet: tuple[str, float] | None = None,
) -> GpumonApp:
    """Shows the runs a Prometheus knows (its address, and how far back), otherwise the named daemons,
    otherwise this machine's daemon, otherwise readings taken in this process. On a terminal, a first picture
    is drawn while Textual is loading."""
    preferred = preferences.load()
    plain, theme = ascii_only or ascii_fallback.wanted(), theme or ascii_fallback.theme()
    feeds, archive = _of_fleet(*fleet) if fleet else _named(hosts) if hosts else _local(settings, own)
    readers = Readers(feeds, Inbox())
    look = Look(theme or preferred.theme, plain, Pick(preferred.order), preferred.processes)
    picture = None if terminal is None else FirstPicture(terminal, look)
    try:
        if picture is not None:
            _draw_first(picture, feeds, readers)
        from monitor.tui.app import GpumonApp

        app = GpumonApp(
            feeds, archive=archive, preferred=preferred, theme=theme, ascii_only=plain, readonly=readonly,
            readers=readers, covered=picture is not None,
        )  # fmt: skip
        _check_theme(app, theme)
    except BaseException:
        if picture is not None:
            picture.leave()
        raise
    if picture is not None:
        picture.close()
        app.on_left = picture.restore
    readers.start()
    return app


def _draw_first(picture: FirstPicture, feeds: Sequence[Feed], readers: Readers) -> None:
    """Draws now, without readings, and again with every reading until the app takes over. Loading Textual
    occupies the interpreter, so it waits a moment for the first reading."""
    hosts, arrived = [(feed.label, feed.mode) for feed in feeds], threading.Event()

    def show() -> None:
        hub = Hub(hosts)
        hub.take(readers.inbox.waiting())
        picture.show(hub.frame())

    def take() -> None:
        show()
        arrived.set()

    show()
    readers.inbox.wake = take
    readers.start()
    arrived.wait(FIRST_SECONDS)


def _check_theme(app: GpumonApp, theme: str | None) -> None:
    if theme is not None and theme not in app.available_themes:
        raise UserError(
            f"there is no theme {theme!r}", hint="one of: " + ", ".join(sorted(app.available_themes))
        )


def _named(hosts: Sequence[tuple[str, str | None]]) -> tuple[list[Feed], Callable[[], Archive] | None]:
    labels = [name or short(parse(url).url) for url, name in hosts]
    twice = Counter(labels)
    shown = [label if twice[label] == 1 else f"{label} #{index + 1}" for index, label in enumerate(labels)]
    feeds: list[Feed] = [RemoteFeed(url, label) for (url, _), label in zip(hosts, shown, strict=True)]
    return feeds, lambda: _daemon_archive(hosts[0][0])


def _of_fleet(url: str, since: float) -> tuple[list[Feed], Callable[[], Archive] | None]:
    """An address that cannot be one is said before the screen is taken over."""
    from monitor.fleet.api import Api

    return [PrometheusFeed(url, since, short(Api(url).url))], None


def _local(settings: Settings, own: bool) -> tuple[list[Feed], Callable[[], Archive] | None]:
    name = socket.gethostname()
    if not own and _answers():
        return [RemoteFeed(None, name)], lambda: _daemon_archive(None)
    store = settings.store
    return [OwnFeed(settings, name)], None if store is None else lambda: _store_archive(store)


def _daemon_archive(url: str | None) -> Archive:
    from monitor.tui.archive import DaemonArchive

    return DaemonArchive(url)


def _store_archive(path: Path) -> Archive:
    from monitor.tui.archive import StoreArchive

    return StoreArchive(path)


def _answers() -> bool:
    try:
        with Client(timeout=PATIENCE_SECONDS) as client:
            client.get("/-/healthy")
    except UserError as error:
        if error.code != EXIT_UNREACHABLE:
            raise
        return False
    return True


def save_screenshot(app: GpumonApp, target: Path, size: tuple[int, int], seconds: float) -> int:
    """Save one SVG of the overview, `seconds` after the first reading."""
    import asyncio

    asyncio.run(_export(app, target, size, seconds))
    return 0


async def _export(app: GpumonApp, target: Path, size: tuple[int, int], seconds: float) -> None:
    from monitor.tui import screenshot

    async with app.run_test(size=size) as pilot:
        began = time.monotonic()
        while not app.heard and time.monotonic() < began + LONGEST_SECONDS:
            await pilot.pause(0.05)
        await pilot.pause(max(0.0, seconds))
        screenshot.write(app, target)
