"""Puts the app together from what the command line asks for."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.client import Client, parse
from monitor.errors import EXIT_UNREACHABLE, UserError
from monitor.settings import Settings
from monitor.tui import ascii as ascii_fallback
from monitor.tui import layout as layouts
from monitor.tui import picture as pictures
from monitor.tui.app import GpumonApp
from monitor.tui.feed import Feed, OwnFeed, RemoteFeed, short

if TYPE_CHECKING:
    from monitor.tui.archive import Archive

PATIENCE_SECONDS = 0.5


def build(
    hosts: Sequence[tuple[str, str | None]],
    settings: Settings,
    *,
    own: bool = False,
    theme: str | None = None,
    ascii_only: bool = False,
    readonly: bool = False,
) -> GpumonApp:
    """Named daemons; else the daemon of this machine; else readings of our own."""
    feeds, archive = _named(hosts) if hosts else _local(settings, own)
    layout = layouts.load()
    app = GpumonApp(
        feeds, archive=archive, layout=layout, theme=theme, readonly=readonly,
        ascii_only=ascii_only or ascii_fallback.wanted(),
    )  # fmt: skip
    if theme is not None and theme not in app.available_themes:
        raise UserError(
            f"there is no theme {theme!r}", hint="one of: " + ", ".join(sorted(app.available_themes))
        )
    app.readers.start()  # the first snapshot is on its way while the screen is being set up
    return app


def _named(hosts: Sequence[tuple[str, str | None]]) -> tuple[list[Feed], Callable[[], Archive] | None]:
    labels = [name or short(parse(url).url) for url, name in hosts]
    twice = Counter(labels)
    shown = [label if twice[label] == 1 else f"{label} #{index + 1}" for index, label in enumerate(labels)]
    feeds: list[Feed] = [RemoteFeed(url, label) for (url, _), label in zip(hosts, shown, strict=True)]
    return feeds, lambda: _daemon_archive(hosts[0][0])


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


def picture(app: GpumonApp, target: Path, size: tuple[int, int], seconds: float) -> int:
    """One SVG of the overview after `seconds` of watching."""
    asyncio.run(_export(app, target, size, seconds))
    return 0


async def _export(app: GpumonApp, target: Path, size: tuple[int, int], seconds: float) -> None:
    async with app.run_test(size=size) as pilot:
        await pilot.pause(max(0.0, seconds))
        pictures.write(app, target)
