"""Options of the tcn trainer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trainers.datasets.table_options import TableConfig

INPUTS = "force,measured,damping,stiffness,ambient,drift"
TARGETS = "position,velocity"
SIMULATED = [*INPUTS.split(","), *TARGETS.split(",")]
"""Columns of a generated run."""


@dataclass(kw_only=True)
class TcnConfig(TableConfig):
    """Options of the TCN trainer."""

    LEAST: ClassVar[dict[str, float]] = {"lambda_physics": 0, "seq_len": 2}
    POSITIVE = (*TableConfig.POSITIVE, "time_step")

    lambda_physics: float = 0.5
    """Weight of the physics residual in the loss."""
    seq_len: int = 50
    """Rows in a window."""
    time_step: float = 0.05
    """Seconds between two rows."""
    channels: int = 32
    """Channels of the network."""
    levels: int = 4
    """Residual blocks; each doubles the dilation."""
    input_columns: str = INPUTS
    """Columns the network sees."""
    target_columns: str = TARGETS
    """Columns it predicts."""
