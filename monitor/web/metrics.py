"""`/metrics`: the page is rendered at most once per snapshot and format, and served from there."""

from __future__ import annotations

import gzip
import os
import time
from dataclasses import dataclass

from monitor.snapshot import Snapshot
from monitor.web.exposition import OPENMETRICS, TEXT, Writer
from monitor.web.families import FAMILIES
from monitor.web.families.base import Limits, Own, make_scene

GZIP_LEVEL = 1
"""Level 1 makes the page 9 times smaller; level 6 costs three times as much for a tenth more."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class Page:
    """One rendering, and its compressed form once somebody asked for it."""

    seq: int
    plain: bytes
    packed: bytes | None = None

    def body(self, packed: bool) -> bytes:
        if not packed:
            return self.plain
        if self.packed is None:
            self.packed = gzip.compress(self.plain, GZIP_LEVEL, mtime=0)
        return self.packed


class Metrics:
    """The pages of the newest snapshot. Used by one thread, the event loop's."""

    def __init__(self, own: Own, limits: Limits) -> None:
        self.own = own
        self.limits = limits
        self._writers: dict[bool, Writer] = {}
        self._pages: dict[bool, Page] = {}

    def page(self, snapshot: Snapshot, *, openmetrics: bool) -> Page:
        page = self._pages.get(openmetrics)
        if page is None or page.seq != snapshot.seq:
            page = self._pages[openmetrics] = self._render(snapshot, openmetrics)
        return page

    def _render(self, snapshot: Snapshot, openmetrics: bool) -> Page:
        begin = time.perf_counter()
        writer = self._writers.get(openmetrics)
        if writer is None:
            writer = self._writers[openmetrics] = Writer(FAMILIES, openmetrics=openmetrics)
        own = self.own
        own.cpu_seconds = sum(os.times()[:2])
        own.resident_bytes = _resident()
        plain = writer.render(make_scene(snapshot, own, self.limits))
        own.render_seconds = time.perf_counter() - begin
        return Page(snapshot.seq, plain)


def negotiate(accept: str) -> bool:
    """Whether the client would rather have OpenMetrics than text. Ties go to what is named first."""
    best, wants = 0.0, False
    for part in accept.split(","):
        kind, *parameters = (piece.strip() for piece in part.split(";"))
        if kind not in ("application/openmetrics-text", "text/plain", "text/*", "*/*"):
            continue
        quality = _quality(parameters)
        if quality > best:
            best, wants = quality, kind == "application/openmetrics-text"
    return wants


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0.0
    return 1.0


def content_type(openmetrics: bool) -> str:
    return OPENMETRICS if openmetrics else TEXT


def _resident() -> int | None:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * PAGE_BYTES
    except OSError:
        return None
