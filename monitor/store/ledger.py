"""The ledger: what each remedy was predicted to gain, and what it gained when it was applied."""

from __future__ import annotations

import sqlite3
import statistics
import time
from collections.abc import Sequence

import msgspec

from monitor.snapshot import Finding, Run


class Entry(msgspec.Struct, frozen=True):
    """One prediction; `realised` is None until a later run shows the remedy applied."""

    run: str
    rule: str
    subject: str
    """Which rank or GPU the finding was about; "" for the run as a whole."""
    script: str | None
    low: float
    likely: float
    high: float
    predicted: float
    """Wall time."""
    after_run: str | None = None
    realised: float | None = None
    realised_low: float | None = None
    realised_high: float | None = None
    realised_time: float | None = None
    way: str | None = None
    """How it was seen: "compare", "change" (within one live run), …"""


class TrackRecord(msgspec.Struct, frozen=True):
    """How good a rule's predictions were so far."""

    rule: str
    predicted: int
    realised: int
    inside: int
    """Of the realised ones: how many fell inside low…high."""
    median_error: float | None = None
    """Median of |likely / realised − 1|."""


COLUMNS = (
    "run, rule, subject, script, low, likely, high, predicted_us, after_run, realised, realised_low,"
    " realised_high, realised_us, way"
)


def entry(row: Sequence[object]) -> Entry:
    """A row in the order of `COLUMNS`."""
    values = list(row)
    for at in (7, 12):
        value = values[at]
        values[at] = value / 1e6 if isinstance(value, int) else None
    return msgspec.convert(dict(zip(Entry.__struct_fields__, values, strict=True)), Entry)


def track_record(rule: str, entries: Sequence[Entry]) -> TrackRecord:
    known = [(one, one.realised) for one in entries if one.realised is not None and one.realised > 0]
    errors = [abs(one.likely / realised - 1.0) for one, realised in known]
    return TrackRecord(
        rule=rule,
        predicted=len(entries),
        realised=len(known),
        inside=sum(one.low <= realised <= one.high for one, realised in known),
        median_error=statistics.median(errors) if errors else None,
    )


def subject_of(finding: Finding) -> str:
    """What a finding is about within its run."""
    if finding.rank is not None:
        return f"rank:{finding.rank}"
    return f"gpu:{finding.gpu}" if finding.gpu else ""


def write_prediction(database: sqlite3.Connection, run: Run, finding: Finding) -> None:
    """A finding without a predicted gain promises nothing and is not kept."""
    gain = finding.speedup
    if gain is None:
        return
    promise = (gain.low, gain.likely, gain.high, time.time_ns() // 1000)
    database.execute(
        "INSERT INTO ledger (run, rule, subject, script, low, likely, high, predicted_us)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run, rule, subject) DO UPDATE SET"
        " low = excluded.low, likely = excluded.likely, high = excluded.high,"
        " predicted_us = excluded.predicted_us WHERE realised IS NULL",
        (run.id, finding.id, subject_of(finding), run.script, *promise),
    )
