"""Which batch size fits? The document's rule (GB ÷ 2) beside a measured one (S1.7).

python -m trainers.suggest tom500 --synthetic
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import torch

from trainers import RECIPES, options
from trainers.data.source import batch_length
from trainers.engine.recipe import Recipe
from trainers.errors import EXIT_USAGE, TrainerError
from trainers.tuning import cuda, memory
from trainers.tuning.saved import saved_bytes


def recipe_class(name: str) -> type[Recipe[Any]]:
    """The recipe of this name."""
    if name not in RECIPES:
        raise TrainerError(f"no recipe {name!r}", hint=f"there are: {', '.join(RECIPES)}")
    module = importlib.import_module(f"trainers.{name}")
    return next(
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Recipe) and value is not Recipe
    )


def measured_bytes(recipe: Recipe[Any], sizes: tuple[int, int]) -> dict[int, int]:
    """Batch size → bytes a step holds: parameters four times (gradient, two moments) and activations."""
    data = recipe.build_data()
    model = recipe.build_model().to(recipe.device)
    fixed = 4 * sum(p.numel() * p.element_size() for p in model.parameters())
    found = {}
    for size in sizes:
        data.train.plan.batch_size = size
        batch = next(iter(data.train.epoch(0)))
        batch = {key: value.to(recipe.device) for key, value in batch.items()}
        found[batch_length(batch)] = fixed + saved_bytes(lambda b=batch: recipe.loss(model, b))
    return found


def main(arguments: list[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    try:
        chosen = recipe_class(words[0] if words else "")
        config = options.parse(chosen.config_class, words[1:], f"trainers.suggest {words[0]}", __doc__ or "")
        device = cuda.choose_device(config.device)
        recipe = chosen(config.replace(quiet=True, num_workers=0), device)
        unit = max(recipe.batch_unit, 1)
        total = memory.device_memory_bytes(device)
        found = measured_bytes(recipe, (2 * unit, 4 * unit))
    except TrainerError as error:
        print(f"trainers.suggest: {error.sentence}", file=sys.stderr)
        return EXIT_USAGE
    what = torch.cuda.get_device_name(device) if device.type == "cuda" else "free host memory"
    print(f"{what}: {total / 1e9:.1f} GB")
    print(f"rule of thumb (GB ÷ 2): batch {memory.rule_of_thumb_batch(total)}")
    print(f"measured ({', '.join(f'{b / 1e6:.0f} MB at {n}' for n, b in found.items())}; up to 80 %): "
          f"batch {memory.measured_batch(found, total)}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
