"""LSTM with attention over time series, a parameter grid over widths and lengths (S4).

    python -m trainers.sequence --data_dir series.csv --target_column value --batch_size 256
    python -m trainers.sequence --synthetic --grid_hidden 128,256 --grid_lengths 30,60,90
    python -m trainers.sequence --synthetic --rung naive

Data: CSV or NPZ tables, one row a day. A sample is `sequence_length` days; the target is the target
column of the day after.
"""

from __future__ import annotations

from trainers.sequence.recipe import SequenceRecipe as RECIPE

__all__ = ["RECIPE"]
