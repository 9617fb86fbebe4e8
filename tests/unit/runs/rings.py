"""Rings for tests: written with the real writer, at times the test chooses."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from monitor.model.clock import Moment
from sdk import ring
from sdk.writer import RingWriter

MS = 1_000_000
BEGIN = 1000 * 10**9
OFFSET = 1_750_000_000 * 10**9


class Script:
    """A training run of made-up steps on its own clock."""

    def __init__(
        self, directory: Path, run: str = "run-1", rank: int = 0, *, file: str = "", **meta: Any
    ) -> None:
        body = {"kind": "trainer", "run": run, "rank": rank, "name": "demo", **meta}
        self.path = directory / (file or f"{run}.{rank}.ring")
        self.writer = RingWriter(str(self.path), body)
        self.clock = BEGIN
        self.writer.words[ring.H_STARTED_MONO] = self.clock
        self.writer.words[ring.H_STARTED_WALL] = BEGIN + OFFSET

    def step(self, ms: float, phases: dict[int, float] | None = None, **words: int) -> None:
        """One step of `ms`; phases in ms by id; other words by their name without ``W_``."""
        record = array("Q", ring.EMPTY_RECORD)
        record[ring.W_BEGIN] = self.clock
        self.clock += int(ms * MS)
        record[ring.W_END] = self.clock
        for phase, took in (phases or {}).items():
            record[ring.W_PHASES + phase] = int(took * MS)
        for name, value in words.items():
            record[getattr(ring, f"W_{name.upper()}")] = value
        self.writer.commit(record)

    def steps(self, many: Iterable[float], **words: Any) -> None:
        for ms in many:
            self.step(ms, **words)

    def live(self, phase: int) -> None:
        self.writer.words[ring.H_LIVE] = ring.pack_live(phase, self.clock)

    def now(self, later: float = 0.0) -> Moment:
        """The moment `later` seconds after the newest step."""
        monotonic = self.clock / 1e9 + later
        return Moment(monotonic + OFFSET / 1e9, monotonic)

    def end(self, state: int = ring.S_ENDED) -> None:
        self.writer.words[ring.H_ENDED_MONO] = self.clock
        self.writer.close(state)
        # close() records the real clock; the test is about the script's own
        with open(self.path, "r+b") as file:
            file.seek(ring.H_ENDED_MONO * 8)
            file.write(self.clock.to_bytes(8, "little"))
