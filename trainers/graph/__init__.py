"""Windowed kNN graphs: graph encoder, transformer, graph decoder; forecasts the next step (S3, "V11").

    python -m trainers.graph --data_dir series.csv --config config.yaml
    python -m trainers.graph --synthetic --tier auto --use_memory_optimizer
    python -m trainers.graph.benchmark            # writes graph_benchmark.png

Data: CSV or NPZ tables, every column a channel. A sample is a window of `window_size` steps with a
graph over them: each step's `time_k` nearest in feature space. Channels the model serves badly get
more weight through a "need" vector, which is updated from the training split only.
"""

from __future__ import annotations

from trainers.graph.recipe import GraphRecipe as RECIPE

__all__ = ["RECIPE"]
