"""Options of the sequence trainer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trainers.datasets.table_options import TableConfig


@dataclass(kw_only=True)
class SequenceConfig(TableConfig):
    """Options of the sequence trainer."""

    LEAST: ClassVar[dict[str, float]] = {"hidden_size": 2}

    batch_size: int = 256
    """Sequences in a batch."""
    sequence_length: int = 60
    """Days of a sequence."""
    hidden_size: int = 128
    """Width of the LSTM."""
    layers: int = 1
    """LSTM layers."""
    target_column: str = "value"
    """The column to forecast; the network sees all columns."""
    columns: str | None = None
    """Columns to use. Unset: all of the first file."""
    grid_hidden: str = ""
    """Train once for each of these widths: --grid_hidden 128,256."""
    grid_lengths: str = ""
    """… and each of these lengths: --grid_lengths 30,60,90."""
    grid_processes: int | None = None
    """Grid runs side by side. Unset: one a core on a CPU (naive: 1), one on a GPU."""
