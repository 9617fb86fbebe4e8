"""The owner of a row. Only the owner's runs may write it; a row from before owners were recorded is adopted
by the run it describes."""

from __future__ import annotations

import sqlite3

from monitor.model.owner import UNKNOWN_OWNER
from monitor.model.run import Run


def owner_of(run: Run) -> int:
    return UNKNOWN_OWNER if run.owner_uid is None else run.owner_uid


def adopt(database: sqlite3.Connection, run: Run) -> None:
    """Assign the owner to a row, and its predictions, that an older version wrote for this very run."""
    who = (owner_of(run), run.id, UNKNOWN_OWNER)
    found = database.execute(
        "UPDATE OR IGNORE runs SET owner = ? WHERE id = ? AND owner = ? AND started_us = ?",
        (*who, int(run.started * 1e6)),
    )
    if found.rowcount:
        database.execute("UPDATE OR IGNORE ledger SET owner = ? WHERE run = ? AND owner = ?", who)
