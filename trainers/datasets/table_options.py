"""Options of the recipes that read tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trainers.config import TrainConfig
from trainers.datasets.tables import TableSettings


@dataclass(kw_only=True)
class TableConfig(TrainConfig):
    """How people's tables become rows of numbers."""

    fill: Literal["none", "forward", "linear", "mean", "drop"] = "none"
    """Empty cells: none skips the file and says so; drop leaves the row out."""
    dates: Literal["index", "features"] = "index"
    """A date column orders the rows; features: weekday and day of the year are columns too."""

    def table_settings(self, min_rows: int) -> TableSettings:
        return TableSettings(fill=self.fill, dates=self.dates, min_rows=min_rows)
