"""The front of a recipe: options in, a trained model and a summary out, one sentence on bad input."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainers import options
from trainers.config import TrainConfig
from trainers.engine import checkpoint, distributed
from trainers.engine.state import Result
from trainers.errors import EXIT_FAILED, EXIT_INTERRUPTED, TrainerError, report
from trainers.loop import Trainer
from trainers.recipe import Recipe
from trainers.tuning import cuda


def main(recipe_class: type[Recipe[Any]], arguments: Sequence[str] | None = None) -> int:
    """`python -m trainers.<recipe>`; returns the exit code."""
    prog = f"trainers.{recipe_class.name}"
    description = f"{importlib.import_module(prog).__doc__}\n\n{_ladder(recipe_class)}"
    try:
        config = options.parse(recipe_class.config_class, arguments, prog, description)
        if config.data_dir is None and not config.synthetic:
            raise TrainerError("no data: --data_dir says where it is", hint="--synthetic generates some")
        result = run(_as_long_as_analyzed(config), recipe_class)
    except TrainerError as error:
        return report(prog, error)
    except OSError as error:  # a full disk, a folder that may not be written …
        where = f"{error.filename}: " if error.filename else ""
        return report(prog, TrainerError(f"{where}{error.strerror or error}", code=EXIT_FAILED))
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    if int(os.environ.get("RANK", 0)) == 0:
        print(json.dumps(summary(result, str(cuda.choose_device(config.device)))))
    return EXIT_INTERRUPTED if result.interrupted else 0


def _as_long_as_analyzed(config: TrainConfig) -> TrainConfig:
    """`gpumon analyze` says how many steps it wants to see."""
    wanted = os.environ.get("GPUMON_MAX_STEPS", "")
    if not wanted.isdigit():
        return config
    return config.replace(max_steps=min(int(wanted), config.max_steps or int(wanted)))


def run(config: TrainConfig, recipe_class: type[Recipe[Any]]) -> Result:
    """Train with these options; what `main` does without the command line."""
    cuda.set_environment()
    device = cuda.choose_device(config.device)
    recipe = recipe_class(config, device)
    for line in cuda.set_up(device, tf32=recipe.on("tf32"), threads=config.threads):
        recipe.say(line)
    recipe.say(f"rung {config.rung} on {device}: {', '.join(sorted(recipe.switches)) or 'no optimization'}")
    for name, why in recipe.without_effect():
        if name in config.explicit:
            recipe.say(f"--{name} has no effect: {why}")
    with distributed.join(device, sharded=config.parallel == "fsdp") as world:
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


def _ladder(recipe_class: type[Recipe[Any]]) -> str:
    rows = [
        f"  {item.name:<16}{item.rung:<10}{item.text} ({item.seed})" for item in recipe_class.optimizations
    ]
    return "optimizations (--rung switches sets of them, --ablate single ones):\n" + "\n".join(rows)
