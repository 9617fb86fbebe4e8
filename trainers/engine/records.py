"""What a run writes to --out: last.pt to resume from, best.pt to use, metrics.jsonl to read."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from sdk import units
from trainers.engine import checkpoint
from trainers.engine.state import Position, Result
from trainers.errors import TrainerError
from trainers.recipe import Recipe

SAME = (
    "batch_size",
    "seed",
    "parallel",
    "gradient_accumulation_steps",
    "validation_fraction",
    "lr",
    "weight_decay",
)
"""Options a continued run must share with the one it continues."""


class Records:
    """Files in `--out/<recipe>/`; only the first rank writes."""

    def __init__(self, recipe: Recipe[Any], *, first: bool) -> None:
        self.folder = Path(recipe.config.out) / recipe.name
        self.last = self.folder / "last.pt"
        self.recipe = recipe
        self.first = first

    def save(self, state: dict[str, Any]) -> None:
        if self.first:
            checkpoint.save(self.last, state)

    def load(self, keys: Collection[str]) -> dict[str, Any] | None:
        """The content of last.pt, made with the same options; None when there is no such file."""
        if not self.last.exists():
            self.recipe.say(f"no checkpoint in {self.folder}: starting afresh")
            return None
        content = checkpoint.load(self.last, self.recipe.device, keys=keys)
        self._check_same(content["config"], self.last)
        return content

    @contextlib.contextmanager
    def fitting(self, what: str) -> Iterator[None]:
        """A part of the checkpoint that does not fit into this run is one sentence."""
        try:
            yield
        except (RuntimeError, KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
            raise TrainerError(
                f"checkpoint {self.last} holds another {what} than these options build",
                hint="the options it was made with are in config.yaml beside it; or --resume never",
            ) from error

    def _check_same(self, before: dict[str, Any], path: Path) -> None:
        for name in SAME:
            now = getattr(self.recipe.config, name)
            if before.get(name) != now:
                raise TrainerError(
                    f"checkpoint {path} was made with --{name} {before.get(name)}, not {now}",
                    hint=f"--{name} {before.get(name)} goes on with it; --resume never starts afresh",
                )

    def keep_best(self, model: dict[str, Any], metrics: dict[str, float]) -> None:
        """Export the weights: they are the best so far."""
        if self.first:
            config = dataclasses.asdict(self.recipe.config)
            content = {"model": model, "metrics": metrics, "config": config}
            checkpoint.save(self.folder / "best.pt", content)

    def append(self, at: Position, result: Result, seconds: float, overflows: int) -> None:
        """A line of figures for a validation."""
        if not self.first:
            return
        rate = result.samples_per_second
        line = {
            "epoch": at.epoch,
            "step": at.step,
            "train_loss": result.losses[-1] if result.losses else None,
            **result.metrics,
            "samples_per_second": rate and round(rate, 1),
            "validate_seconds": round(seconds, 4),
            **result.norms,
            "overflows": overflows,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / "metrics.jsonl", "a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
        figures = ", ".join(f"{key} {value:.4g}" for key, value in result.metrics.items())
        self.recipe.say(f"epoch {at.epoch}: {figures} (validation took {units.seconds(seconds)})")
