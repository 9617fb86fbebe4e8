"""Rows damaged on disk: SQLite returns whatever is there, of any type. They are skipped."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
BROKEN_ROW = (TypeError, ValueError, LookupError, OverflowError, msgspec.MsgspecError, zlib.error)
"""What reading values of unexpected types may raise."""
UNWRITABLE = (*BROKEN_ROW, sqlite3.IntegrityError)
"""What writing a row with unstorable values may raise; its transaction continues."""


def readable(rows: Iterable[Any], make: Callable[[Any], T]) -> Iterator[T]:
    """The result for each readable row."""
    for row in rows:
        try:
            made = make(row)
        except BROKEN_ROW:
            continue
        yield made
