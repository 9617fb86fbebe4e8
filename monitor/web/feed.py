"""The newest snapshot, passed from the tick thread to everyone who serves it, serialised once."""

from __future__ import annotations

import asyncio
import gzip

from monitor.language import speaking, told
from monitor.model.snapshot import Snapshot, encode
from monitor.web.privacy import Viewer, for_viewer, owners

GZIP_LEVEL = 1
"""Chosen: zlib's fastest."""


class View:
    """A snapshot as one kind of viewer may see it, with the bytes made from it so far."""

    __slots__ = ("_events", "_json", "_packed", "snapshot")

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._json: bytes | None = None
        self._packed: bytes | None = None
        self._events: dict[str, bytes] = {}

    def json(self, packed: bool = False) -> bytes:
        if self._json is None:
            self._json = encode(self.snapshot)
        if not packed:
            return self._json
        if self._packed is None:
            self._packed = gzip.compress(self._json, GZIP_LEVEL, mtime=0)
        return self._packed

    def event(self, language: str = "en") -> bytes:
        """The snapshot as one server-sent event, its findings in this language."""
        if language not in self._events:
            with speaking(language):
                body = self.json() if language == "en" else encode(told.snapshot(self.snapshot))
            self._events[language] = b"id: %d\ndata: %s\n\n" % (self.snapshot.seq, body)
        return self._events[language]


class Served:
    """One snapshot with the views made so far: viewers who own nothing in it share one."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._views: dict[Viewer, View] = {}

    def view(self, viewer: Viewer) -> View:
        if viewer.sees_all:
            viewer = Viewer(sees_all=True)
        elif viewer.uid not in owners(self.snapshot):
            viewer = Viewer()
        if viewer not in self._views:
            self._views[viewer] = View(for_viewer(self.snapshot, viewer))
        return self._views[viewer]


class Feed:
    """`publish` is called by the tick thread, everything else by the event loop."""

    def __init__(self) -> None:
        self.latest: Served | None = None
        self.closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()
        self._waiting = 0

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def publish(self, snapshot: Snapshot) -> None:
        self.latest = Served(snapshot)
        if self._waiting and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def close(self) -> None:
        """End every stream; new ones end at once."""
        self.closed = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def after(self, seq: int, patience: float) -> Served | None:
        """The newest snapshot once it is newer than `seq`; None when patience or the daemon ends. A slow
        client gets the newest one, not a queue of old ones."""
        changed = self._changed
        if self.closed:
            return None
        if self.latest is not None and self.latest.snapshot.seq > seq:
            return self.latest
        self._waiting += 1
        try:
            async with asyncio.timeout(patience):
                await changed.wait()
        except TimeoutError:
            return None
        finally:
            self._waiting -= 1
        return None if self.closed else self.latest
