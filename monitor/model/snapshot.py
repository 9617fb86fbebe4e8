"""The central type of gpumon: an immutable picture of the machine and its training runs.

Collectors produce parts of it, advice reads it, every consumer (metrics, TUI, page, CLI, store, replay)
renders it. Numbers are numbers and the unit is in the key. What could not be read is ``None``:
absent is never 0. There is one serializer, `encode` / `decode`, at the bottom.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from monitor.model.decoders import decoder
from monitor.model.finding import Finding, FindingGroup
from monitor.model.gpu import Gpu, Source
from monitor.model.host import Host, Process
from monitor.model.owner import RingCount
from monitor.model.run import Run
from monitor.model.wall import Wall

SCHEMA_VERSION = 1
HISTORY_STEPS = "history.steps"
"""Key of `Snapshot.dropped`: steps given up because the history could not be written for too long."""


class Collector(Struct, frozen=True):
    """How one collector did. "No data" is not a failure; one failure never stops the rest."""

    name: str
    ok: bool
    seconds: float
    last_success: float | None = None
    failures: int = 0
    error: str | None = None


class Snapshot(Struct, frozen=True):
    seq: int
    time: float
    """Wall time, seconds since the epoch; for people."""
    monotonic: float
    """CLOCK_MONOTONIC seconds; for arithmetic."""
    interval_seconds: float
    source: Source
    host: Host
    schema: int = SCHEMA_VERSION
    gpus: tuple[Gpu, ...] = ()
    processes: tuple[Process, ...] = ()
    runs: tuple[Run, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Ranked by the advice engine."""
    groups: tuple[FindingGroup, ...] = ()
    """The findings that still matter, identical ones grouped, in the same ranking."""
    wall: Wall = Wall()
    collectors: tuple[Collector, ...] = ()
    dropped: dict[str, int] = {}
    """What was left out because of a limit (processes, runs, rings, …) → how many."""
    ring_trouble: tuple[RingCount, ...] = ()
    """Whose rings could not be used or were left out, and why, since the start."""
    rule_errors: dict[str, int] = {}
    """Advice rules that failed, by id → how often since the start."""
    version: str | None = None
    stale_after_seconds: float = 0.0
    """Beyond this age it no longer shows what is going on. Computed by `monitor.model.facts`."""


_encoder = msgspec.json.Encoder()


def encode(value: Any) -> bytes:
    """Any part of a snapshot as JSON."""
    return _encoder.encode(value)


def decode(data: bytes | str) -> Snapshot:
    """A snapshot from JSON. Raises `SchemaError` with one clear sentence."""
    try:
        snapshot: Snapshot = decoder(Snapshot).decode(data)
    except msgspec.MsgspecError as error:
        raise SchemaError(f"this is not a gpumon snapshot: {error}") from error
    if snapshot.schema != SCHEMA_VERSION:
        raise SchemaError(
            f"snapshot schema {snapshot.schema} does not fit this gpumon (schema {SCHEMA_VERSION}): "
            "use the same version on both sides"
        )
    return snapshot


class SchemaError(ValueError):
    """The data is not a snapshot this version understands."""
