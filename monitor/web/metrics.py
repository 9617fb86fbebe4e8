"""`/metrics`: the page is rendered at most once per snapshot and format, then served from memory.

prometheus-client chooses the format and describes the daemon's process; our families are written by
`exposition`.
"""

from __future__ import annotations

import gzip
import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.gc_collector import GCCollector
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from monitor.model.snapshot import Snapshot
from monitor.web.exposition import EOF, Writer
from monitor.web.families import FAMILIES
from monitor.web.families.base import Family, Limits, Own, make_scene

GZIP_LEVEL = 1
"""Level 1 makes the page 9 times smaller; level 6 takes three times as long for another tenth."""
OWN_SECONDS = 5.0
"""Our choice: how old the figures of our own process may be. Scrapes are usually further apart."""

log = logging.getLogger("gpumon.web")


@dataclass(slots=True)
class Page:
    """One rendering, and its compressed form once somebody has asked for it."""

    seq: int
    plain: bytes
    packed: bytes | None = None
    asked: bool = False
    """Whether somebody asked for it; otherwise it was made ahead."""

    def body(self, packed: bool) -> bytes:
        if not packed:
            return self.plain
        if self.packed is None:
            self.packed = gzip.compress(self.plain, GZIP_LEVEL, mtime=0)
        return self.packed


class Metrics:
    """The pages of the newest snapshot, one per format."""

    def __init__(self, own: Own, limits: Limits, families: tuple[Family, ...] = FAMILIES) -> None:
        self.own = own
        self.limits = limits
        self.families = families
        self._writers: dict[bool, Writer] = {}
        self._pages: dict[bool, Page] = {}
        self._rendering = threading.Lock()
        self._process = OwnProcess()

    def page(self, snapshot: Snapshot, *, openmetrics: bool) -> Page:
        """The page, for a client that asks for it."""
        page = self._made(snapshot, openmetrics)
        page.asked = True
        return page

    def prepare(self, snapshot: Snapshot) -> None:
        """Whoever asked for the last page will ask for the next. Making it ahead, in another thread than the
        one that answers, keeps nobody waiting."""
        for openmetrics, last in list(self._pages.items()):
            if last.asked:
                last.asked = False
                self._make_ahead(snapshot, openmetrics, packed=last.packed is not None)

    def _make_ahead(self, snapshot: Snapshot, openmetrics: bool, *, packed: bool) -> None:
        """A page that cannot be made must not end the ticks; it fails again, as an answer, when asked for."""
        try:
            self._made(snapshot, openmetrics).body(packed)
        except Exception as error:
            log.warning("/metrics cannot be made: %r", error, exc_info=error)

    def _made(self, snapshot: Snapshot, openmetrics: bool) -> Page:
        with self._rendering:
            page = self._pages.get(openmetrics)
            if page is None or page.seq < snapshot.seq:
                page = self._pages[openmetrics] = self._render(snapshot, openmetrics)
            return page

    def _render(self, snapshot: Snapshot, openmetrics: bool) -> Page:
        begin = time.perf_counter()
        writer = self._writers.get(openmetrics)
        if writer is None:
            writer = self._writers[openmetrics] = Writer(self.families, openmetrics=openmetrics)
        ours = writer.render(make_scene(snapshot, self.own, self.limits))
        plain = self._process.page(openmetrics) + ours
        self.own.render_seconds = time.perf_counter() - begin
        return Page(snapshot.seq, plain)


class OwnProcess:
    """The client's own collectors: this process, its garbage collector, its Python. They are asked now and
    then, and the client writes a metric anew only when it has changed; most do not."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        for collector in (ProcessCollector, GCCollector, PlatformCollector):
            collector(registry=self._registry)
        self._metrics: list[Metric] = []
        self._asked_at = float("-inf")
        self._written: dict[tuple[str, bool], tuple[Metric, bytes]] = {}
        self._pages: dict[bool, bytes] = {}
        """What is written of `_metrics`, by format."""

    def page(self, openmetrics: bool) -> bytes:
        now = time.monotonic()
        if now - self._asked_at >= OWN_SECONDS:
            self._metrics, self._asked_at = list(self._registry.collect()), now
            self._pages.clear()
        if openmetrics not in self._pages:
            self._pages[openmetrics] = b"".join([self._text(one, openmetrics) for one in self._metrics])
        return self._pages[openmetrics]

    def _text(self, metric: Metric, openmetrics: bool) -> bytes:
        known = self._written.get((metric.name, openmetrics))
        if known is None or known[0] != metric:
            known = self._written[metric.name, openmetrics] = (metric, _written(metric, openmetrics))
        return known[1]


class _Only(Collector):
    """What the client's writers read from: one metric."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterable[Metric]:
        return (self._metric,)


def _written(metric: Metric, openmetrics: bool) -> bytes:
    page = generate_openmetrics(_Only(metric)) if openmetrics else generate_latest(_Only(metric))
    return bytes(page).removesuffix(EOF.encode())


def negotiate(accept: str) -> str:
    """The content type prometheus-client would choose for this client."""
    try:
        return choose_encoder(accept)[1]
    except TypeError:  # it compares a version that is not a number
        return CONTENT_TYPE_PLAIN_0_0_4


def is_openmetrics(content_type: str) -> bool:
    return content_type.startswith("application/openmetrics-text")
