"""Which batch size fits? The document's rule (GB ÷ 2) beside a measured one (S1.7).

python -m trainers.suggest tom500 --synthetic
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import torch

from sdk import units
from trainers import options
from trainers.datasets.source import batch_length
from trainers.errors import TrainerError, report
from trainers.recipe import Recipe, find
from trainers.tuning import cuda, memory
from trainers.tuning.saved_bytes import saved_bytes


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
        found[batch_length(batch)] = fixed + saved_bytes(partial(recipe.loss, model, batch))
    return found


def main(arguments: list[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    try:
        chosen = find(words[0] if words else "")
        config = options.parse(chosen.config_class, words[1:], f"trainers.suggest {words[0]}", __doc__ or "")
        device = cuda.choose_device(config.device)
        recipe = chosen(config.replace(quiet=True, num_workers=0), device)
        unit = max(recipe.batch_unit, 1)
        total = memory.device_memory_bytes(device)
        found = measured_bytes(recipe, (2 * unit, 4 * unit))
    except TrainerError as error:
        return report("trainers.suggest", error)
    what = torch.cuda.get_device_name(device) if device.type == "cuda" else "free host memory"
    print(f"{what}: {units.size(total)}")
    print(f"rule of thumb (GB ÷ 2): batch {memory.rule_of_thumb_batch(total)}")
    print(f"measured ({', '.join(f'{units.size(b)} at {n}' for n, b in found.items())}; up to 80 %): "
          f"batch {memory.measured_batch(found, total)}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
