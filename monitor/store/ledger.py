"""The ledger: what each remedy was predicted to gain, and what it gained once applied."""

from __future__ import annotations

import sqlite3
import statistics
import time
from collections.abc import Iterable, Sequence

import msgspec

from monitor.comparison.realised import agrees
from monitor.model.finding import Finding
from monitor.model.owner import UNKNOWN_OWNER
from monitor.model.run import Run
from monitor.store.owners import owner_of


class Entry(msgspec.Struct, frozen=True):
    """One prediction; `realised` is None until a run shows the remedy applied."""

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
    changed: str | None = None
    """The observed difference between the two runs."""
    host_kind: str | None = None
    """The kind of machine the prediction was made on."""
    owner_uid: int = UNKNOWN_OWNER
    """Of the run."""

    @property
    def inside(self) -> bool | None:
        """Whether the realised gain agrees with the predicted range; None until there is one."""
        if self.realised is None:
            return None
        return agrees(self.low, self.high, self.realised, self.realised_low, self.realised_high)


class Realisation(msgspec.Struct, frozen=True):
    """What a remedy gained, as a step-rate ratio with its interval."""

    run: str
    rule: str
    subject: str
    ratio: float
    low: float | None
    high: float | None
    after_run: str
    changed: str
    owner_uid: int = UNKNOWN_OWNER
    """Of the run that had the finding."""


class TrackRecord(msgspec.Struct, frozen=True):
    """How good a rule's predictions were so far, on one kind of machine: others prove nothing here."""

    rule: str
    host_kind: str | None
    predicted: int
    realised: int
    inside: int
    """Of the realised ones: how many fell inside low…high."""
    median_error: float | None = None
    """Median of |likely / realised − 1|."""


COLUMNS = (
    "run, rule, subject, script, low, likely, high, predicted_us, after_run, realised, realised_low,"
    " realised_high, realised_us, changed, host_kind, owner"
)


def entry(row: Sequence[object]) -> Entry:
    """A row in the order of `COLUMNS`."""
    values = dict(zip(Entry.__struct_fields__, row, strict=True))
    for name in ("predicted", "realised_time"):
        time_us = values[name]
        values[name] = time_us / 1e6 if isinstance(time_us, int) else None
    return msgspec.convert(values, Entry)


def track_record(rule: str, kind: str | None, entries: Sequence[Entry]) -> TrackRecord:
    known = [(one, one.realised) for one in entries if one.realised is not None and one.realised > 0]
    errors = [abs(one.likely / realised - 1.0) for one, realised in known]
    return TrackRecord(
        rule=rule,
        host_kind=kind,
        predicted=len(entries),
        realised=len(known),
        inside=sum(bool(one.inside) for one, _ in known),
        median_error=statistics.median(errors) if errors else None,
    )


def subject_of(finding: Finding) -> str:
    """What a finding is about within its run."""
    if finding.rank is not None:
        return f"rank:{finding.rank}"
    return f"gpu:{finding.gpu}" if finding.gpu else ""


def write_predictions(database: sqlite3.Connection, run: Run, findings: Iterable[Finding]) -> None:
    """Store what a run's findings promise. A repeated promise replaces the earlier one until it is realised;
    a finding without a predicted gain promises nothing."""
    now_us, kind, owner = time.time_ns() // 1000, run.host_kind, owner_of(run)
    rows = [
        (owner, run.id, one.id, subject_of(one), run.script, gain.low, gain.likely, gain.high, now_us, kind)
        for one in findings
        if (gain := one.speedup) is not None
    ]
    database.executemany(
        "INSERT INTO ledger (owner, run, rule, subject, script, low, likely, high, predicted_us, host_kind)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (owner, run, rule, subject) DO UPDATE SET"
        " low = excluded.low, likely = excluded.likely, high = excluded.high,"
        " predicted_us = excluded.predicted_us WHERE realised IS NULL",
        rows,
    )


def write_realisation(database: sqlite3.Connection, seen: Realisation) -> None:
    """Store what a remedy gained next to its prediction; without a prediction it is not kept."""
    database.execute(
        "UPDATE ledger SET realised = ?, realised_low = ?, realised_high = ?, after_run = ?,"
        " realised_us = ?, changed = ? WHERE owner = ? AND run = ? AND rule = ? AND subject = ?",
        (
            seen.ratio, seen.low, seen.high, seen.after_run,
            time.time_ns() // 1000, seen.changed, seen.owner_uid, seen.run, seen.rule, seen.subject,
        ),
    )  # fmt: skip
