"""Reads a ring in a test: header, meta, scalars, and records by name."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sdk import ring
from tests.conftest import wait_for


@dataclass(frozen=True)
class Record:
    number: int
    seconds: float
    flags: int
    samples: int
    epoch: int
    phases: dict[str, float]
    words: tuple[int, ...]


@dataclass(frozen=True)
class RingFile:
    path: Path
    header: ring.Header
    meta: dict[str, Any]
    scalars: dict[str, float]
    records: list[Record]
    lost: int

    @property
    def config(self) -> dict[str, Any]:
        found: dict[str, Any] = self.meta["config"]
        return found


def bits_float(word: int) -> float:
    """The float64 that a word stores."""
    return float(struct.unpack("<d", struct.pack("<Q", word))[0])


def read_records(fd: int, header: ring.Header) -> tuple[list[memoryview], int, int]:
    """All records as views of their words, the number of the newest, and how many were lost."""
    block = ring.read_block(fd, header, 0, 1 << 30)
    words = block.raw.cast("Q") if block.count else memoryview(b"")
    size = ring.SLOT_WORDS
    records = [words[at * size : (at + 1) * size] for at in range(block.count)]
    return records, block.cursor, block.lost


def read_ring(path: Path) -> RingFile:
    """The whole ring; asserts read + lost = written for every test that reads one."""
    fd = os.open(path, os.O_RDONLY)
    try:
        header = ring.read_header(fd, os.fstat(fd).st_size)
        meta = wait_for(lambda: ring.read_meta(fd))  # None while a writer changes it
        raw, cursor, lost = read_records(fd, header)
        assert cursor == header.head == len(raw) + lost
        scalars = dict(zip(meta.get("scalars", []), ring.read_scalars(fd), strict=False))
    finally:
        os.close(fd)
    names = ring.PHASES if meta["kind"] == ring.KIND_TRAINER else ring.WORKER_PHASES
    return RingFile(path, header, meta, scalars, [_record(words, names, meta) for words in raw], lost)


def _record(words: memoryview, names: tuple[str, ...], meta: dict[str, Any]) -> Record:
    known = [*names, *meta.get("phases", [])]
    spent = {name: words[ring.W_PHASES + at] / 1e9 for at, name in enumerate(known)}
    return Record(
        number=words[ring.W_SEQ],
        seconds=(words[ring.W_END] - words[ring.W_BEGIN]) / 1e9,
        flags=words[ring.W_FLAGS],
        samples=words[ring.W_SAMPLES],
        epoch=words[ring.W_EPOCH],
        phases={name: seconds for name, seconds in spent.items() if seconds},
        words=tuple(words),
    )


def trainer_rings(directory: Path) -> list[RingFile]:
    """Every trainer's ring in a directory, by rank."""
    found = [read_ring(path) for path in directory.glob("*.ring") if ".w" not in path.name]
    return sorted(found, key=lambda one: (one.meta["rank"], one.meta["run"]))


def worker_rings(directory: Path) -> list[RingFile]:
    return [read_ring(path) for path in sorted(directory.glob("*.w*.ring"))]
