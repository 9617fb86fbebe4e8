"""Where snapshots come from: a daemon's stream, own readings, or a recording.

Each feed runs in one thread and puts updates into one queue; the app is only told that something
is there. The next reading is armed when the last has ended. Nothing of a feed outlives the app.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from monitor.clock import Moment
from monitor.errors import UserError
from monitor.snapshot import Snapshot
from monitor.tui.frame import Update

BACKOFF = (1.0, 2.0, 5.0)
BACKLOG = 1200


class Feed(Protocol):
    """One host. `read` yields a snapshot, or the sentence why there is none, until `stop` is set."""

    label: str
    mode: str

    def read(self, stop: threading.Event) -> Iterator[Snapshot | str]: ...


class Inbox:
    """Updates waiting for the app; bounded, so a paused app does not grow."""

    def __init__(self, wake: Callable[[], object]) -> None:
        self._waiting: deque[Update] = deque(maxlen=BACKLOG)
        self._wake = wake

    def put(self, host: int, said: Snapshot | str) -> None:
        snapshot = said if isinstance(said, Snapshot) else None
        error = said if isinstance(said, str) else None
        self._waiting.append(Update(host, snapshot, error, Moment.now()))
        self._wake()

    def drain(self) -> list[Update]:
        out = []
        while self._waiting:
            out.append(self._waiting.popleft())
        return out


class Readers:
    """The threads of all feeds."""

    def __init__(self, feeds: Sequence[Feed], inbox: Inbox) -> None:
        self._stop = threading.Event()
        self._inbox = inbox
        self._threads = [
            threading.Thread(target=self._run, args=(index, feed), name=f"feed-{feed.label}", daemon=True)
            for index, feed in enumerate(feeds)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def _run(self, index: int, feed: Feed) -> None:
        for said in feed.read(self._stop):
            if self._stop.is_set():
                return
            self._inbox.put(index, said)

    def stop(self, seconds: float = 1.0) -> None:
        """Ask all to end and wait a moment; one stuck in a network read dies with the process."""
        self._stop.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(seconds / len(self._threads))


class StillFeed:
    """Snapshots that are already there: tests, screenshots."""

    def __init__(self, label: str, snapshots: Sequence[Snapshot | str], mode: str = "") -> None:
        self.label = label
        self.mode = mode
        self._snapshots = snapshots

    def read(self, stop: threading.Event) -> Iterator[Snapshot | str]:
        yield from self._snapshots


class RemoteFeed:
    """A daemon, over HTTP or its socket; asked again after a growing pause when it does not answer."""

    mode = ""

    def __init__(self, url: str | None, label: str | None = None) -> None:
        self._url = url
        self.label = label or short(url or "this host")

    def read(self, stop: threading.Event) -> Iterator[Snapshot | str]:
        failures = 0
        while not stop.is_set():
            try:
                for snapshot in self._stream():
                    failures = 0
                    yield snapshot
                yield "the daemon ended the stream"
            except UserError as error:
                yield error.sentence
            stop.wait(BACKOFF[min(failures, len(BACKOFF) - 1)])
            failures += 1

    def _stream(self) -> Iterator[Snapshot]:
        from monitor.client import Client

        return Client(self._url).stream(reconnect=False)


def short(url: str) -> str:
    """A URL as a label: "http://gpu-3:9835" → "gpu-3"."""
    bare = url.split("://", 1)[-1].rstrip("/")
    return bare.removesuffix(":9835") or url


def hosts_file(path: Path) -> list[tuple[str, str | None]]:
    """URLs, one a line, each with an optional name before it; # starts a comment."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the hosts file {path}: {error}") from error
    out: list[tuple[str, str | None]] = []
    for raw in text.splitlines():
        words = raw.split("#", 1)[0].split()
        if len(words) > 2:
            raise UserError(f"{path}: “{raw.strip()}” is not a host", hint="one a line: URL, or NAME URL")
        if words:
            out.append((words[-1], words[0] if len(words) == 2 else None))
    if not out:
        raise UserError(f"the hosts file {path} names no host", hint="one a line: URL, or NAME URL")
    return out
