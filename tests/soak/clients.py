"""The clients: scrapers that note how long a response takes, and pages that follow the stream."""

from __future__ import annotations

import http.client
import threading
import time
from abc import ABC, abstractmethod
from types import TracebackType

SCRAPE_EVERY_SECONDS = 1.0


class _Threads(ABC):
    def __init__(self, port: int, count: int) -> None:
        self.port = port
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(at,), daemon=True) for at in range(count)]

    @abstractmethod
    def _run(self, at: int) -> None:
        """What one thread does until it is stopped."""

    @abstractmethod
    def __enter__(self) -> None:
        """Start them."""

    def _start(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(5.0)


class Scrapers(_Threads):
    """`seconds` is how long each response took, since the start."""

    def __init__(self, port: int, count: int) -> None:
        super().__init__(port, count)
        self.seconds: list[tuple[float, float]] = []
        """When, and how long."""

    def __enter__(self) -> Scrapers:  # type: ignore[override]
        self._begin = time.monotonic()
        self._start()
        return self

    def _run(self, at: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        time.sleep(at * SCRAPE_EVERY_SECONDS / len(self._threads))
        while not self._stopping.wait(SCRAPE_EVERY_SECONDS):
            begin = time.monotonic()
            connection.request("GET", "/metrics", headers={"Accept-Encoding": "gzip"})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200, answer.status
            self.seconds.append((begin - self._begin, time.monotonic() - begin))


class Pages(_Threads):
    """`events` is how many snapshots reached each page."""

    def __init__(self, port: int, count: int) -> None:
        super().__init__(port, count)
        self.events = [0] * count

    def __enter__(self) -> Pages:  # type: ignore[override]
        self._start()
        return self

    def _run(self, at: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/api/v1/stream")
        answer = connection.getresponse()
        while not self._stopping.is_set():
            chunk = answer.read1(1 << 16)
            if not chunk:
                return
            self.events[at] += chunk.count(b"\ndata: ")
