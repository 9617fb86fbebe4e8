"""Date columns: recognised, turned into days, and into features of the calendar."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

DATE_FEATURES = ("weekday_sin", "weekday_cos", "yearday_sin", "yearday_cos")
FORMATS = (None, "%Y/%m/%d", "%d.%m.%Y", "%Y/%m/%d %H:%M", "%d.%m.%Y %H:%M")
"""None: ISO 8601. Month before day or day before month cannot be told apart, so neither is guessed."""


def parse_dates(cells: Sequence[str]) -> np.ndarray | None:
    """Days since 1970 of every cell; None when one of them is not a date."""
    days = [_day(cell) for cell in cells]
    return None if None in days else np.array(days, dtype=np.float64)


def _day(cell: str) -> float | None:
    for form in FORMATS:
        with contextlib.suppress(ValueError):
            found = datetime.strptime(cell, form) if form else datetime.fromisoformat(cell)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() / 86400
    return None


def date_features(days: np.ndarray) -> np.ndarray:
    """Weekday and day of the year as points on a circle: Sunday is next to Monday."""
    week, year = 2 * np.pi * (days + 3) / 7, 2 * np.pi * days / 365.2425
    return np.column_stack([np.sin(week), np.cos(week), np.sin(year), np.cos(year)])
