"""Tiny configurations of the five recipes: a few batches train in a fraction of a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from trainers.engine import checkpoint
from trainers.loop import Trainer
from trainers.recipe import find

TINY: dict[str, dict[str, Any]] = {
    "tcn": {"synthetic_size": 0.01, "seq_len": 20, "channels": 4, "levels": 2, "batch_size": 64},
    "tom500": {
        "synthetic_size": 0.002,
        "image_size": 32,
        "slices": 6,
        "width": 4,
        "depth": 2,
        "batch_size": 4,
    },
    "reid": {"synthetic_size": 0.001, "image_height": 16, "image_width": 8, "width": 4, "batch_size": 16},
    "graph": {"synthetic_size": 0.05, "window_size": 12, "time_k": 3, "hidden_channels": 8, "batch_size": 16},
    "sequence": {"synthetic_size": 0.02, "sequence_length": 10, "hidden_size": 8, "batch_size": 32},
}


def make(name: str, folder: Path, **options: Any) -> Trainer:
    """A trainer of the tiny recipe, seeded."""
    given: dict[str, Any] = {"num_workers": 0, "epochs": 2, "products": "all", **TINY[name], **options}
    if name == "graph":
        given.setdefault("cache_dir", str(folder / "graphs"))
    recipe_class = find(name)
    config = recipe_class.config_class(
        synthetic=given.pop("synthetic", True),
        out=str(folder),
        monitor=False,
        **{"device": "cpu", "quiet": True, **given},
    )
    recipe = recipe_class(config, torch.device(config.device))
    checkpoint.seed_everything(config.seed)
    return Trainer(recipe)


def indices(trainer: Trainer, epoch: int) -> list[list[int]]:
    """The plan's batches of an epoch."""
    return [batch.tolist() for batch in trainer.data.train.plan.iterate(epoch)]
