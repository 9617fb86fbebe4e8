"""Steps in the store: a batch of steps is one row, its columns packed and compressed.

A row per step costs SQLite 44 bytes and 1.7 µs; a packed batch costs a fraction of both, and gives every
reader (plots, compare, the API) what it wants: columns.
"""

from __future__ import annotations

import contextlib
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from operator import add, floordiv, sub
from typing import Any

import msgspec

from monitor.model.steps import Columns
from monitor.store.corrupt import BROKEN_ROW

LEVEL, WINDOW_BITS, MEMORY_LEVEL = 1, 12, 5
"""Our choices: zlib's fastest level, with buffers the size of a batch. Setting up the usual 256 kB takes
longer than compressing a second of steps."""
MAX_COUNT = 1 << 20
"""Steps in one chunk: far more than are ever read from a ring at a time."""
_PHASE = "phase."


class Chunk(msgspec.Struct, frozen=True):
    """One row of `chunks`, without its ring."""

    @classmethod
    def of(cls, row: Any) -> Chunk:
        """From the database. Raises if its values have other types."""
        return msgspec.convert(dict(zip(cls.__struct_fields__, row, strict=True)), cls)

    first: int
    count: int
    begin_us: int
    """Wall time."""
    end_us: int
    packed: bytes


def pack(columns: Columns, wall_offset_ns: int) -> Chunk:
    """The batch as a row. Steps run begin to begin, so the gaps between them are zeros and cost nothing."""
    begin, end = _us(columns.begin), _us(columns.end)
    parts = {
        "gap": list(map(sub, begin[1:], end)),
        "us": list(map(sub, end, begin)),
        "flags": columns.flags,
        "samples": columns.samples,
        "tokens": columns.tokens,
        "overhead": columns.overhead,
        "gc": columns.gc,
    }
    if not isinstance(columns.numbers, range):
        parts["skip"] = list(map(sub, columns.numbers[1:], columns.numbers))
    parts |= {f"{_PHASE}{phase}": _us(column) for phase, column in columns.phases.items()}
    body = {name: _packed(values) for name, values in parts.items() if any(values)}
    rest = {"loss": columns.loss, "epoch": columns.epoch, "memory": columns.memory, "device": columns.device}
    raw = msgspec.msgpack.encode({**rest, **body})
    offset = wall_offset_ns // 1000
    count = len(columns)
    return Chunk(columns.numbers[0], count, begin[0] + offset, end[-1] + offset, _compressed(raw))


def _compressed(raw: bytes) -> bytes:
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, WINDOW_BITS, MEMORY_LEVEL)
    return packer.compress(raw) + packer.flush()


def _us(values: Sequence[int]) -> list[int]:
    return list(map(floordiv, values, repeat(1000)))


def _packed(values: list[int]) -> tuple[str, bytes]:
    """In the narrowest type that fits: trying is faster than searching for the maximum."""
    try:
        return "B", bytes(values)
    except ValueError:
        pass
    try:
        return "I", array("I", values).tobytes()
    except OverflowError:
        return "q", array("q", values).tobytes()


class BrokenChunk(ValueError):
    """The database does not contain what was written: a bad disk, a torn page."""


@contextlib.contextmanager
def _checked() -> Iterator[None]:
    """Corrupted bytes can raise anything: turn all of it into one kind of error."""
    try:
        yield
    except BROKEN_ROW as error:
        raise BrokenChunk(f"a chunk of steps is broken: {error}") from error


def _body(chunk: Chunk) -> dict[str, Any]:
    if not (isinstance(chunk.count, int) and 0 < chunk.count <= MAX_COUNT):
        raise ValueError(f"{chunk.count!r} steps")
    return dict(msgspec.msgpack.decode(zlib.decompress(chunk.packed)))


def unpack(chunk: Chunk, wall_offset_ns: int) -> Columns:
    """The inverse of `pack`, to the µs: the source of figures when a ring no longer holds the steps. Raises
    `BrokenChunk`."""
    with _checked():
        return _columns(chunk, _body(chunk), wall_offset_ns)


def _columns(chunk: Chunk, body: dict[str, Any], wall_offset_ns: int) -> Columns:
    count = chunk.count
    us, gaps = _unpacked(body, "us", count), _unpacked(body, "gap", count - 1)
    begin = [at * 1000 - wall_offset_ns for at in _sums(chunk.begin_us, map(add, us, gaps))]
    phases = {
        int(key[len(_PHASE) :]): [value * 1000 for value in _unpacked(body, key, count)]
        for key in body
        if key.startswith(_PHASE)
    }
    return Columns.of(
        _numbers(body, chunk),
        begin,
        [value * 1000 for value in us],
        phases,
        flags=_unpacked(body, "flags", count),
        samples=_unpacked(body, "samples", count),
        tokens=_unpacked(body, "tokens", count),
        overhead=_unpacked(body, "overhead", count),
        gc=_unpacked(body, "gc", count),
        loss=body.get("loss"),
        epoch=body.get("epoch"),
        memory=body.get("memory"),
        device=body.get("device"),
    )


def _numbers(body: dict[str, Any], chunk: Chunk) -> list[int]:
    count = chunk.count
    skips = _unpacked(body, "skip", count - 1) if "skip" in body else [1] * (count - 1)
    return _sums(chunk.first, skips)


class Steps(msgspec.Struct):
    """Steps as columns; all lists have the same length."""

    step: list[int] = []
    begin: list[float] = []
    """Wall time, seconds since the epoch."""
    seconds: list[float] = []
    flags: list[int] = []
    samples: list[int] = []
    tokens: list[int] = []
    phases: dict[str, list[float]] = {}

    def extend(self, chunk: Chunk, names: Sequence[str]) -> None:
        """Raises `BrokenChunk`, leaving the steps unchanged."""
        with _checked():
            part = _part(chunk, _body(chunk), names)
        self.append(part)

    def append(self, part: Steps) -> None:
        """Append the steps that follow these."""
        before = len(self.step)
        for name in ("step", "begin", "seconds", "flags", "samples", "tokens"):
            getattr(self, name).extend(getattr(part, name))
        for phase, values in part.phases.items():
            column = self.phases.setdefault(phase, [])
            column += [0.0] * (before - len(column))
            column += values

    def finish(self) -> Steps:
        """Pad every phase column to full length."""
        for column in self.phases.values():
            column += [0.0] * (len(self.step) - len(column))
        return self


def _part(chunk: Chunk, body: dict[str, Any], names: Sequence[str]) -> Steps:
    count = chunk.count
    us, gaps = _unpacked(body, "us", count), _unpacked(body, "gap", count - 1)
    return Steps(
        step=_numbers(body, chunk),
        begin=[at / 1e6 for at in _sums(chunk.begin_us, map(add, us, gaps))],
        seconds=[value / 1e6 for value in us],
        flags=_unpacked(body, "flags", count),
        samples=_unpacked(body, "samples", count),
        tokens=_unpacked(body, "tokens", count),
        phases={
            names[int(key[len(_PHASE) :])]: [value / 1e6 for value in _unpacked(body, key, count)]
            for key in body
            if key.startswith(_PHASE)
        },
    )


def _unpacked(body: dict[str, Any], name: str, count: int) -> list[int]:
    """The column; one that was all zeros is not stored."""
    if name not in body:
        return [0] * count
    code, raw = body[name]
    values = array(code)
    values.frombytes(raw)
    if len(values) != count:
        raise ValueError(f"{name} has {len(values)} values for {count}")
    return values.tolist()


def _sums(start: int, steps: Iterable[int]) -> list[int]:
    found = [start]
    for step in steps:
        found.append(found[-1] + step)
    return found
