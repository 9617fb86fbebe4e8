"""NVLink: which links are up, what they could carry, what each carried, and its errors.

A card reports an error through one field for each of the first twelve links, or through a field scoped to the
link, and the sum over all links through another. Cards refuse some of these, and some report a sum of 0. So
the card's sum is used if it is nonzero, else the sum over the links.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from monitor.gpu.calls import ABSENT_CODES, RETRY_ABSENT, Values, check, find_function
from monitor.gpu.fields import KIB, Counted, Field, FieldBatch, Tally, plain
from monitor.model.gpu import NvlinkLink

MAX_LINKS = 36
SPEED_COMMON = 90
"""Field: MB/s of one link in one direction."""
FIRST_LANES, ALL_LANES = 6, 12
"""Fields of links 0 to 5 are numbered consecutively from one field, those of links 6 to 11 from another."""


class Kind(NamedTuple):
    """The fields for one kind of error; 0: none."""

    first: int
    more: int
    scoped: int
    total: int


ERRORS = {
    "crc_flit": Kind(32, 96, 0, 38),
    "crc_data": Kind(39, 102, 0, 45),
    "crc": Kind(0, 0, 163, 0),
    "replay": Kind(46, 108, 161, 52),
    "recovery": Kind(53, 114, 162, 59),
}
BYTES = {"transmit": ((138, KIB), (202, 1)), "receive": ((139, KIB), (204, 1))}
"""Direction → fields of one link with their unit in bytes; the first that answers counts."""
Choices = tuple[Values, Values]
"""What one link said, by kind of error and direction: where both answered, the first counts."""


class Links:
    """Reads every link; a card without NVLink is retried only now and then."""

    def __init__(self, handle: Any, target: Values) -> None:
        self._handle = handle
        self._target = target
        self._state = find_function("nvmlDeviceGetNvLinkState")
        self._retry_at = 0.0
        self._whole: Values = {}
        """The speed of a link, and the card's own sums."""
        self._each: list[Choices] = []
        self._fields: FieldBatch | None = None
        self._tallies = {way: Tally(1.0) for way in BYTES}
        self.sums: dict[str, Counted | None] = {}
        """Direction → bytes over all links and their rate."""
        self.code = 0
        self._blank()

    def collect(self, now: float) -> bool:
        if now < self._retry_at or self._state is None:
            return False
        up = self._states()
        if up is None:
            self._blank()
            self._retry_at = now + RETRY_ABSENT
            return False
        self._read(up, now)
        return True

    def _blank(self) -> None:
        self._target.update(links_active=None, bandwidth_bytes_per_second=None, errors={}, links=())
        self.sums = {}

    def _states(self) -> list[bool] | None:
        """Whether each link is up. Links are numbered without gaps; the first unknown one is the end."""
        out, up = ctypes.c_uint(), []
        for link in range(MAX_LINKS):
            self.code = self._state(self._handle, link, ctypes.byref(out)) if self._state else 13
            check(self.code)
            if self.code:
                break
            up.append(out.value == 1)
        failed = self.code and self.code not in ABSENT_CODES
        return up if up and not failed else None

    def _read(self, up: list[bool], now: float) -> None:
        if self._fields is None or len(up) != len(self._each):
            self._whole, self._each = {}, [({}, {}) for _ in up]
            self._fields = FieldBatch(self._handle, list(_fields(self._whole, self._each)))
        self._fields.collect(now)
        links = tuple(map(_link, range(len(up)), up, self._each))
        speed = sum(up) * (self._whole["speed"] or 0) * 1e6
        self.sums = {way: self._sum(way, links, now) for way in BYTES}
        self._target.update(
            links_active=sum(up),
            bandwidth_bytes_per_second=speed or None,
            errors=dict(self._totals(links)),
            links=links,
        )

    def _sum(self, way: str, links: Iterable[NvlinkLink], now: float) -> Counted | None:
        found = [link.transmit_bytes if way == "transmit" else link.receive_bytes for link in links]
        known = [count for count in found if count is not None]
        return self._tallies[way](sum(known), now) if known else None

    def _totals(self, links: tuple[NvlinkLink, ...]) -> Iterator[tuple[str, int]]:
        for kind in ERRORS:
            counts = [link.errors[kind] for link in links if kind in link.errors]
            total = self._whole.get(kind) or (sum(counts) if counts else self._whole.get(kind))
            if total is not None:
                yield kind, total

    def ask_again(self) -> None:
        self._retry_at = 0.0
        self._fields = None


class Traffic:
    """Bytes over all links and their rate: the card's own sum, read in the tick's batch, or that of
    `Links`."""

    def __init__(self, own: Values, links: Links, target: Values) -> None:
        self._own, self._links, self._target = own, links, target
        self.code = 0
        self.collect(0.0)

    def collect(self, now: float) -> bool:
        for way in BYTES:
            own: Counted | None = self._own.get(way)
            counted = own if own and own.total else self._links.sums.get(way) or own
            self._target[f"{way}_bytes"] = counted.total if counted else None
            self._target[f"{way}_bytes_per_second"] = counted.per_second if counted else None
        return False

    def ask_again(self) -> None:
        """Nothing is asked here."""


def _fields(whole: Values, each: Sequence[Choices]) -> Iterator[Field]:
    """Every field that may describe a link, and those for all of them; the batch drops what the card
    refuses."""
    yield Field(SPEED_COMMON, whole, "speed", plain(int))
    for kind, fields in ERRORS.items():
        if fields.total:
            yield Field(fields.total, whole, kind, plain(int))
        for link, (first, second) in enumerate(each):
            if fields.scoped:
                yield Field(fields.scoped, first, kind, plain(int), link)
            if fields.first and link < ALL_LANES:
                lane = fields.first + link if link < FIRST_LANES else fields.more + link - FIRST_LANES
                yield Field(lane, second, kind, plain(int))
    for way, ways in BYTES.items():
        for link, choices in enumerate(each):
            for target, (field, unit) in zip(choices, ways, strict=True):
                yield Field(field, target, way, _in_bytes(unit), link)


def _in_bytes(unit: int) -> Any:
    return plain(lambda value: int(value) * unit)


def _link(number: int, up: bool, choices: Choices) -> NvlinkLink:
    first, second = choices
    known = {what: value for what, value in (*second.items(), *first.items()) if value is not None}
    return NvlinkLink(number, up, known.pop("transmit", None), known.pop("receive", None), known)
