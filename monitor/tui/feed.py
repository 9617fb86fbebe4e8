"""Where snapshots come from: a daemon's stream, readings taken here, or a recording.

Each feed runs in its own thread and puts updates into one queue; the app is only woken. The next reading is
timed from the end of the last. No feed outlives the app.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from monitor.language import told
from monitor.model.clock import Moment
from monitor.model.errors import UserError
from monitor.model.files import read_text
from monitor.model.snapshot import Snapshot
from monitor.tui.frame import Past, Reading, Update

if TYPE_CHECKING:
    from monitor.model.history import HistoryPage
    from monitor.model.settings import Settings

BACKOFF = (1.0, 2.0, 5.0)
"""Seconds between attempts to reach a daemon that does not answer; the last value repeats."""
BACKLOG = 1200
"""Updates kept while the app is paused: as many as a graph keeps readings."""
PAST_SECONDS = 600.0
"""How much history a fresh screen asks the daemon for."""

FeedItem = Snapshot | str | Past
"""A snapshot, a sentence saying why there is none, or readings from before the first snapshot."""


class Feed(Protocol):
    """One host. `read` yields snapshots, or a sentence saying why there is none, until `stop` is set."""

    label: str
    mode: str

    def read(self, stop: threading.Event) -> Iterator[FeedItem]: ...


class Inbox:
    """Updates waiting for the app; bounded, so that a paused app does not grow."""

    def __init__(self, wake: Callable[[], object] = lambda: None) -> None:
        self._waiting: deque[Update] = deque(maxlen=BACKLOG)
        self.wake = wake
        """Called in the feed's thread when something has arrived."""

    def put(self, host: int, item: FeedItem) -> None:
        snapshot = told.snapshot(item) if isinstance(item, Snapshot) else None
        error = item if isinstance(item, str) else None
        past = item if isinstance(item, dict) else None
        self._waiting.append(Update(host, snapshot, error, Moment.now(), past))
        self.wake()

    def waiting(self) -> list[Update]:
        """What has arrived, without removing it."""
        return list(self._waiting)

    def drain(self) -> list[Update]:
        out = []
        while self._waiting:
            out.append(self._waiting.popleft())
        return out


class Readers:
    """The threads of all feeds."""

    def __init__(self, feeds: Sequence[Feed], inbox: Inbox) -> None:
        self._stop = threading.Event()
        self.inbox = inbox
        self._threads = [
            threading.Thread(target=self._run, args=(index, feed), name=f"feed-{feed.label}", daemon=True)
            for index, feed in enumerate(feeds)
        ]

    def start(self) -> None:
        """Start reading; a second call does nothing."""
        for thread in self._threads:
            if thread.ident is None:
                thread.start()

    def _run(self, index: int, feed: Feed) -> None:
        for item in feed.read(self._stop):
            if self._stop.is_set():
                return
            self.inbox.put(index, item)

    def stop(self, seconds: float = 1.0) -> None:
        """Ask all threads to end and wait a moment; one stuck in a network read ends with the process."""
        self._stop.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(seconds / len(self._threads))


class RemoteFeed:
    """A daemon, over HTTP or its socket; retried after a growing pause if it does not answer."""

    mode = ""

    def __init__(self, url: str | None, label: str | None = None) -> None:
        self._url = url
        self.label = label or short(url or "this host")

    def read(self, stop: threading.Event) -> Iterator[FeedItem]:
        failures, asked = 0, False
        while not stop.is_set():
            try:
                for snapshot in self._stream():
                    failures = 0
                    yield snapshot
                    if not asked:
                        asked = True
                        yield from self._past(snapshot)
                yield "the daemon ended the stream"
            except UserError as error:
                yield error.sentence
            stop.wait(BACKOFF[min(failures, len(BACKOFF) - 1)])
            failures += 1

    def _stream(self) -> Iterator[Snapshot]:
        from monitor.client import Client

        return Client(self._url).stream(reconnect=False)

    def _past(self, snapshot: Snapshot) -> Iterator[Past]:
        """The last minutes from the daemon's history, so that graphs do not start empty."""
        from monitor.tui.archive import DaemonArchive

        seconds = PAST_SECONDS
        points = max(1, int(seconds / snapshot.interval_seconds))
        try:
            page = DaemonArchive(self._url).page(snapshot.time - seconds, snapshot.time, points)
        except UserError:
            return
        if page is not None:
            yield past_of(page)


def past_of(page: HistoryPage) -> Past:
    """Recorded readings as trails, starting at the first one; missing readings become gaps."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for series in page.series:
        if series.subject.startswith("gpu:"):
            slots = {
                round((t - page.start) / page.seconds): v
                for t, v in zip(series.time, series.mean, strict=True)
            }
            found.setdefault(series.subject.removeprefix("gpu:"), {})[series.field] = slots
    return {uuid: _trail(fields) for uuid, fields in found.items()}


def _trail(fields: dict[str, dict[int, float]]) -> list[Reading]:
    """One reading per interval. Ticks drift, so a single empty interval is bridged; more are a gap."""
    known = {slot for slots in fields.values() for slot in slots}
    out = []
    for slot in range(min(known), max(known) + 1):
        at = slot - 1 if slot not in known and slot - 1 in known else slot
        use, memory, power, heat, clock = (fields.get(name, {}).get(at) for name in PAST_FIELDS)
        out.append(Reading(use, memory, power, heat, clock, frozenset(), None, None))
    return out


PAST_FIELDS = (
    "utilization_ratio",
    "memory_used_bytes",
    "power_watts",
    "temperature_celsius",
    "sm_clock_hertz",
)


class OwnFeed:
    """Readings taken in this process if there is no daemon; they end with it."""

    mode = "own"

    def __init__(self, settings: Settings, label: str) -> None:
        self._settings = settings
        self.label = label

    def read(self, stop: threading.Event) -> Iterator[FeedItem]:
        from monitor.pipeline.pipeline import Pipeline

        pipeline = Pipeline(self._settings)
        try:
            while not stop.is_set():
                began = time.monotonic()
                yield pipeline.tick()
                stop.wait(max(0.05, self._settings.interval - (time.monotonic() - began)))
        finally:
            pipeline.close()


class PrometheusFeed:
    """Runs over many machines, from what Prometheus has scraped of their daemons."""

    mode = "remote"

    def __init__(self, url: str, since: float, label: str) -> None:
        self._url, self._since = url, since
        self.label = label

    def read(self, stop: threading.Event) -> Iterator[FeedItem]:
        from monitor.fleet.fleet import REFRESH_SECONDS, Fleet

        fleet, seq = Fleet(self._url, since=self._since), 0
        while not stop.is_set():
            try:
                yield fleet.snapshot(seq)
            except UserError as error:
                yield error.sentence
            seq += 1
            stop.wait(REFRESH_SECONDS)


def short(url: str) -> str:
    """A URL as a label: "http://gpu-3:10835" → "gpu-3"."""
    bare = url.split("://", 1)[-1].rstrip("/")
    return bare.removesuffix(":10835") or url


def hosts_file(path: Path) -> list[tuple[str, str | None]]:
    """One URL per line, optionally preceded by a name; # starts a comment."""
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the hosts file {path}: {error}") from error
    out: list[tuple[str, str | None]] = []
    for raw in text.splitlines():
        words = raw.split("#", 1)[0].split()
        if len(words) > 2:
            raise UserError(f"{path}: “{raw.strip()}” is not a host", hint="one per line: URL, or NAME URL")
        if words:
            out.append((words[-1], words[0] if len(words) == 2 else None))
    if not out:
        raise UserError(f"the hosts file {path} names no host", hint="one per line: URL, or NAME URL")
    return out
