"""Puts a scene on the app with the clock frozen, and takes the picture as text or SVG."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

from textual.pilot import Pilot

from monitor.model.clock import Moment
from monitor.model.snapshot import Snapshot
from monitor.tui.app import GpumonApp
from monitor.tui.feed import FeedItem
from monitor.tui.frame import Update
from monitor.tui.screenshot import svg as svg_of
from tests.tui import scenes

Act = Callable[[Pilot[None]], Awaitable[Any]]
SIZES = {"60x15": (60, 15), "80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60)}


class StillFeed:
    """Snapshots made beforehand."""

    def __init__(self, label: str, snapshots: Sequence[FeedItem], mode: str = "") -> None:
        self.label = label
        self.mode = mode
        self._snapshots = snapshots

    def read(self, stop: threading.Event) -> Iterator[FeedItem]:
        yield from self._snapshots


def frozen() -> Moment:
    return Moment(scenes.NOW, 1000.0 + scenes.TICKS)


class StagedApp(GpumonApp):
    """The app with updates put in by hand instead of by threads, at the snapshots' own times."""

    def __init__(self, hosts: Iterable[tuple[str, list[Snapshot | str]]], **options: Any) -> None:
        os.environ["TZ"] = "UTC"
        time.tzset()
        parts = list(hosts)
        mode = options.pop("mode", "")
        super().__init__(
            [StillFeed(label, [], mode) for label, _ in parts], clock=options.pop("clock", frozen), **options
        )
        for index, (_, said) in enumerate(parts):
            self.hub.take(_update(index, item) for item in said)
        self.frame = self.hub.frame()


def _update(host: int, item: Snapshot | str) -> Update:
    if isinstance(item, str):
        return Update(host, None, item, frozen())
    return Update(host, item, None, Moment(item.time, item.monotonic))


def staged(scene: str, **options: Any) -> StagedApp:
    """A scene on one host."""
    return StagedApp([("lab-07", list(scenes.ticks(scene)))], **options)


async def pictures(app: GpumonApp, sizes: Iterable[tuple[int, int]], act: Act | None = None) -> list[str]:
    """The screen after `act` at one size after the other: the terminal is resized in between."""
    first, *rest = sizes
    async with app.run_test(size=first) as pilot:
        await pilot.pause()
        if act is not None:
            await act(pilot)
        await pilot.pause()
        out = [characters(app)]
        for size in rest:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            await pilot.pause()
            out.append(characters(app))
        return out


async def picture(app: GpumonApp, size: tuple[int, int], act: Act | None = None, *, svg: bool = False) -> str:
    """The screen after `act`: its characters line by line, or an SVG."""
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        if act is not None:
            await act(pilot)
            await pilot.pause()
        return svg_of(app) if svg else characters(app)


def characters(app: GpumonApp) -> str:
    """What a reader of the terminal sees."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips()) + "\n"


def pressing(*keys: str) -> Act | None:
    """An act that presses keys, one after the other."""
    if not keys:
        return None

    async def act(pilot: Pilot[None]) -> None:
        for key in keys:
            await pilot.press(key)
            await pilot.app.workers.wait_for_complete()
            await pilot.pause()

    return act
