"""The front of a recipe: options in, a trained model and a summary out, one sentence on bad input."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from trainers import options
from trainers.config import TrainConfig
from trainers.engine import checkpoint, distributed
from trainers.engine.recipe import Recipe
from trainers.engine.trainer import Result, Trainer
from trainers.errors import EXIT_INTERRUPTED, TrainerError
from trainers.tuning import cuda


def run(config: TrainConfig, recipe_class: type[Recipe[Any]]) -> Result:
    """Train with these options; what `main` does without the command line."""
    cuda.set_environment()
    device = cuda.choose_device(config.device)
    recipe = recipe_class(config, device)
    for line in cuda.set_up(device, tf32=recipe.on("tf32"), threads=config.threads):
        recipe.say(line)
    recipe.say(f"rung {config.rung} on {device}: {', '.join(sorted(recipe.switches)) or 'no optimization'}")
    with distributed.join(device) as world:
        return _train(config, recipe, world)


def _train(config: TrainConfig, recipe: Recipe[Any], world: distributed.World) -> Result:
    """A function of its own: what it made is gone when the ranks part."""
    checkpoint.seed_everything(config.seed)
    trainer = Trainer(recipe, world)
    if world.first:
        folder = Path(config.out) / recipe.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.yaml").write_text(options.to_yaml(config), encoding="utf-8")
    return trainer.fit()


def summary(result: Result, device: str) -> dict[str, Any]:
    """The figures of a run, for stdout."""
    rate = result.samples_per_second
    return {
        "device": device,
        "steps": result.steps,
        "samples_per_second": rate and round(rate, 1),
        "last_loss": result.losses[-1] if result.losses else None,
        "validate_seconds": round(result.validate_seconds, 3),
        "skipped_files": result.skipped_files,
        "memory_halvings": result.memory_halvings,
        "stopped_early": result.stopped_early,
        "interrupted": result.interrupted,
        **result.metrics,
    }


def main(recipe_class: type[Recipe[Any]], description: str, arguments: Sequence[str] | None = None) -> int:
    """`python -m trainers.<recipe>`; returns the exit code."""
    prog = f"trainers.{recipe_class.name}"
    try:
        config = options.parse(
            recipe_class.config_class, arguments, prog, description + _ladder(recipe_class)
        )
        if config.data_dir is None and not config.synthetic:
            raise TrainerError("no data: --data_dir says where it is", hint="--synthetic generates some")
        result = run(config, recipe_class)
    except TrainerError as error:
        print(f"{prog}: {error.sentence}", file=sys.stderr)
        if error.hint:
            print(f"\nhint: {error.hint}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    if distributed_rank() == 0:
        print(json.dumps(summary(result, str(torch.device(cuda.choose_device(config.device))))))
    return EXIT_INTERRUPTED if result.interrupted else 0


def distributed_rank() -> int:
    import os

    return int(os.environ.get("RANK", 0))


def _ladder(recipe_class: type[Recipe[Any]]) -> str:
    rows = [
        f"  {item.name:<16}{item.rung:<10}{item.text} ({item.seed})" for item in recipe_class.optimizations
    ]
    return "\n\noptimizations (--rung switches sets of them, --ablate single ones):\n" + "\n".join(rows)
