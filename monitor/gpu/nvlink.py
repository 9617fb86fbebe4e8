"""NVLink: which links are up, what they could carry, what each carried, and its errors.

A card reports an error through one field for each of the first twelve links, or through a field scoped to the
link, and the sum over all links through another. Cards refuse some of these, and some report a sum of 0. So
the card's sum is used if it is nonzero, else the sum over the links.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pynvml

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


class Links:
    """Reads every link; a card without NVLink is retried only now and then."""

    def __init__(self, handle: Any, target: Values) -> None:
        self._handle = handle
        self._target = target
        self._state = find_function("nvmlDeviceGetNvLinkState")
        self._speed = find_function("nvmlDeviceGetFieldValues")
        self._retry_at = 0.0
        self._values: Values = {}
        self._fields: FieldBatch | None = None
        self._tallies = {way: Tally(1.0) for way in BYTES}
        self._up: list[bool] = []
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
        if self._fields is None or len(up) != len(self._up):
            self._values = {}
            self._fields = FieldBatch(self._handle, list(_fields(len(up), self._values)))
        self._up = up
        self._fields.collect(now)
        links = tuple(self._link(number) for number in range(len(up)))
        self.sums = {way: self._sum(way, links, now) for way in BYTES}
        self._target.update(
            links_active=sum(up),
            bandwidth_bytes_per_second=self._bandwidth(sum(up)) if any(up) else None,
            errors=dict(self._totals(links)),
            links=links,
        )

    def _link(self, number: int) -> NvlinkLink:
        sent, received = (_first(self._values, number, way) for way in BYTES)
        errors = {kind: _first(self._values, number, kind) for kind in ERRORS}
        known = {kind: count for kind, count in errors.items() if count is not None}
        return NvlinkLink(number, self._up[number], sent, received, known)

    def _sum(self, way: str, links: Iterable[NvlinkLink], now: float) -> Counted | None:
        found = [link.transmit_bytes if way == "transmit" else link.receive_bytes for link in links]
        known = [count for count in found if count is not None]
        return self._tallies[way](sum(known), now) if known else None

    def _totals(self, links: tuple[NvlinkLink, ...]) -> Iterator[tuple[str, int]]:
        for kind in ERRORS:
            counts = [link.errors[kind] for link in links if kind in link.errors]
            total = self._values.get(kind) or (sum(counts) if counts else self._values.get(kind))
            if total is not None:
                yield kind, total

    def _bandwidth(self, links: int) -> float | None:
        field = (pynvml.c_nvmlFieldValue_t * 1)()
        field[0].fieldId = SPEED_COMMON
        code = self._speed(self._handle, 1, field) if self._speed else pynvml.NVML_ERROR_NOT_SUPPORTED
        check(code)
        if code or field[0].nvmlReturn:
            return None
        wide = field[0].valueType == pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
        speed = field[0].value.ullVal if wide else field[0].value.uiVal
        return links * speed * 1e6 if speed else None

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


def _fields(links: int, target: Values) -> Iterator[Field]:
    """Every field that may describe a link, and the sums; the batch drops those the card refuses."""
    for kind, fields in ERRORS.items():
        if fields.total:
            yield Field(fields.total, target, kind, plain(int))
        for link in range(links):
            if fields.scoped:
                yield Field(fields.scoped, target, f"{kind}/{link}/0", plain(int), link)
            if fields.first and link < ALL_LANES:
                lane = fields.first + link if link < FIRST_LANES else fields.more + link - FIRST_LANES
                yield Field(lane, target, f"{kind}/{link}/1", plain(int))
    for way, choices in BYTES.items():
        for link in range(links):
            for choice, (field, unit) in enumerate(choices):
                yield Field(field, target, f"{way}/{link}/{choice}", _in_bytes(unit), link)


def _in_bytes(unit: int) -> Any:
    return plain(lambda value: int(value) * unit)


def _first(values: Values, link: int, what: str) -> int | None:
    first: int | None = values.get(f"{what}/{link}/0")
    return first if first is not None else values.get(f"{what}/{link}/1")
