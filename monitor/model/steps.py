"""A block of records as columns: lists of ints, built and summed only by C built-ins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress
from operator import add, sub
from typing import cast

from sdk import ring
from sdk.ring import Block

LONGEST_STEP_NS = 10**15
"""Eleven days; a longer step is a broken or hostile record."""
_BYTES = range(1, 1 << 53)
"""What a step's memory may be; 0 means unknown."""
_DEVICE = (ring.W_DEVICE_BUSY, ring.W_DEVICE_STARVED, ring.W_DEVICE_LAG)


class Columns:
    """Consecutive records. `phases` has only the phases that took any time."""

    __slots__ = (
        "_sums",
        "bad",
        "begin",
        "device",
        "end",
        "epoch",
        "first",
        "flags",
        "gc",
        "loss",
        "losses",
        "memory",
        "numbers",
        "overhead",
        "phases",
        "raw",
        "samples",
        "tokens",
    )

    def __init__(self, block: Block, now_ns: int) -> None:
        words = block.raw.cast("Q")
        self.first = block.first
        self.numbers: list[int] | range = range(block.first, block.first + block.count)
        self.begin = _column(words, ring.W_BEGIN)
        self.end = _column(words, ring.W_END)
        self.raw = list(map(sub, self.end, self.begin))
        self.flags = _column(words, ring.W_FLAGS)
        self.samples = _column(words, ring.W_SAMPLES)
        self.tokens = _column(words, ring.W_TOKENS)
        self.overhead = _column(words, ring.W_OVERHEAD)
        self.gc = _column(words, ring.W_GC)
        columns = ((phase, _column(words, ring.W_PHASES + phase)) for phase in range(ring.PHASE_SLOTS))
        self.phases = {phase: column for phase, column in columns if any(column)}
        self._sums: dict[int, int] | None = None
        self.device = _device(words)
        self.epoch = min(words[-ring.SLOT_WORDS + ring.W_EPOCH], 1 << 53) if block.count else 0
        self.memory = next(filter(_BYTES.__contains__, reversed(_column(words, ring.W_MEMORY))), 0)
        self.losses = _losses(block)
        """Of each step, NaN where there is none; empty if only the latest is known."""
        self.loss = _last_finite(self.losses)
        self.bad = self._sanitize(now_ns)

    @classmethod
    def of(
        cls,
        numbers: list[int],
        begin: list[int],
        raw: list[int],
        phases: dict[int, list[int]],
        *,
        flags: list[int],
        samples: list[int],
        tokens: list[int],
        overhead: list[int],
        gc: list[int],
        loss: float | None,
        epoch: int | None,
        memory: int | None,
        device: Sequence[int] | None,
    ) -> Columns:
        """Columns that were already checked, from wherever they were stored."""
        made = object.__new__(cls)
        made.first, made.numbers, made.begin, made.raw, made.phases = numbers[0], numbers, begin, raw, phases
        made.end = list(map(add, begin, raw))
        made.flags, made.samples, made.tokens, made.overhead, made.gc = flags, samples, tokens, overhead, gc
        made.loss, made.losses, made.epoch, made.memory = loss, [], epoch or 0, memory or 0
        measured, busy, starved, lag = device or (0, 0, 0, 0)
        made.device = (measured, busy, starved, lag)
        made.bad, made._sums = 0, None
        return made

    def __len__(self) -> int:
        return len(self.raw)

    def _sanitize(self, now_ns: int) -> int:
        """Remove records with impossible times; returns how many."""
        if not self.raw or (
            min(self.raw) > 0
            and max(self.raw) < LONGEST_STEP_NS
            and max(self.end) <= now_ns
            and max(self.samples) < 1 << 40
            and max(self.tokens) < 1 << 44
            and max(self.overhead) < LONGEST_STEP_NS
            and max(self.gc) < LONGEST_STEP_NS
            and max(self.flags) < 1 << 32
            and max(self.sums().values(), default=0) <= sum(self.raw)
        ):
            return 0
        good: list[bool] = [
            0 < raw < LONGEST_STEP_NS
            and end <= now_ns
            and self.samples[at] < 1 << 40
            and self.tokens[at] < 1 << 44
            and self.overhead[at] < LONGEST_STEP_NS
            and self.gc[at] < LONGEST_STEP_NS
            and self.flags[at] < 1 << 32
            and all(column[at] <= raw for column in self.phases.values())
            for at, (raw, end) in enumerate(zip(self.raw, self.end, strict=True))
        ]
        self.keep(good)
        return good.count(False)

    def keep(self, mask: list[bool]) -> None:
        """Keep only the records where `mask` is true."""
        self.numbers = list(compress(self.numbers, mask))
        for name in ("begin", "end", "raw", "flags", "samples", "tokens", "overhead", "gc"):
            setattr(self, name, list(compress(getattr(self, name), mask)))
        self.phases = {phase: list(compress(column, mask)) for phase, column in self.phases.items()}
        self.losses = list(compress(self.losses, mask))
        self._sums = None

    def sums(self) -> dict[int, int]:
        """Phase → its ns over all records; added up once."""
        if self._sums is None:
            self._sums = {phase: sum(column) for phase, column in self.phases.items()}
        return self._sums

    def slice(self, start: int, stop: int) -> Columns:
        """Records start…stop-1 as columns of their own; device results stay with the original."""
        part = object.__new__(Columns)
        part.numbers = self.numbers[start:stop]
        for name in ("begin", "end", "raw", "flags", "samples", "tokens", "overhead", "gc"):
            setattr(part, name, getattr(self, name)[start:stop])
        part.phases = {phase: column[start:stop] for phase, column in self.phases.items()}
        part._sums = None
        part.first, part.bad, part.device = self.first, 0, (0, 0, 0, 0)
        part.epoch, part.memory, part.losses = self.epoch, self.memory, self.losses[start:stop]
        latest = self.loss if stop == len(self) else None
        part.loss = _last_finite(part.losses) if self.losses else latest
        return part


def _column(words: memoryview, word: int) -> list[int]:
    return words[word :: ring.SLOT_WORDS].tolist()


def _device(words: memoryview) -> tuple[int, int, int, int]:
    """The number of measured steps, and the sums of their busy ns, starved ns and lag."""
    which = _column(words, ring.W_DEVICE_SEQ)
    measured = sum(map(bool, which))
    if not measured:
        return 0, 0, 0, 0
    columns = [list(compress(_column(words, word), which)) for word in _DEVICE]
    if max(map(max, columns)) > LONGEST_STEP_NS:
        return 0, 0, 0, 0  # no device takes eleven days for a step
    busy, starved, lag = map(sum, columns)
    return measured, busy, starved, lag


def _losses(block: Block) -> list[float]:
    return cast("list[float]", block.raw.cast("d")[ring.W_LOSS :: ring.SLOT_WORDS].tolist())


def _last_finite(losses: Sequence[float]) -> float | None:
    return next(filter(math.isfinite, reversed(losses)), None)
