"""Before and after, the document's four figures: GPU use, samples/s, epoch time, memory (S4.7).

    python -m trainers.compare sequence --synthetic --before naive --after best --steps 20

For runs that gpumon has recorded, `gpumon compare A B` says more (interval, noise, phases).
"""

from __future__ import annotations

import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import torch

from sdk import units
from trainers import options
from trainers.engine import checkpoint
from trainers.engine.state import WARM_UP_BATCHES
from trainers.errors import TrainerError, report
from trainers.loop import Trainer
from trainers.recipe import find
from trainers.tuning import cuda


@dataclass(frozen=True)
class Figures:
    """None is "not known here", never 0."""

    gpu_use: float | None
    samples_per_second: float
    epoch_seconds: float
    memory_bytes: int | None


def measure(name: str, config: Any, rung: str, steps: int) -> Figures:
    """Train some steps of a rung after a warm-up."""
    device = cuda.choose_device(config.device)
    recipe = find(name)(config.replace(rung=rung, quiet=True, monitor=False), device)
    checkpoint.seed_everything(config.seed)
    trainer = Trainer(recipe)
    trainer.train_steps(WARM_UP_BATCHES)
    begun = time.perf_counter()
    trainer.train_steps(steps)
    if device.type == "cuda":
        torch.cuda.synchronize()
    rate = steps * recipe.config.batch_size / (time.perf_counter() - begun)
    length = trainer.data.train.plan.length(0)
    return Figures(_gpu_use(device), rate, length / rate, _memory(device))


def _apart(name: str, config: Any, rung: str, steps: int) -> Figures:
    """`measure` in a fresh process: a peak of memory is a process's own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, name, config, rung, steps).result()


def _gpu_use(device: torch.device) -> float | None:
    if device.type != "cuda":
        return None
    try:
        return torch.cuda.utilization(device) / 100
    except (RuntimeError, ModuleNotFoundError):
        return None


def _memory(device: torch.device) -> int | None:
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 if sys.platform == "linux" else None


def table(before: Figures, after: Figures) -> str:
    rows = [
        ("GPU use", units.percent(before.gpu_use), units.percent(after.gpu_use)),
        ("samples/s", units.whole(before.samples_per_second), units.whole(after.samples_per_second)),
        ("epoch time", units.seconds(before.epoch_seconds), units.seconds(after.epoch_seconds)),
        ("peak memory", units.size(before.memory_bytes), units.size(after.memory_bytes)),
    ]
    lines = [f"{'':<12}{'before':>14}{'after':>14}"] + [f"{n:<12}{a:>14}{b:>14}" for n, a, b in rows]
    gained = units.gain(after.samples_per_second / before.samples_per_second)
    return "\n".join([*lines, f"{gained} in samples/s"])


def _take(words: list[str], name: str, default: str) -> str:
    """Remove `--name VALUE` from the words."""
    if f"--{name}" not in words:
        return default
    at = words.index(f"--{name}")
    value = words[at + 1] if at + 1 < len(words) else default
    del words[at : at + 2]
    return value


def main(arguments: list[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    before, after = _take(words, "before", "naive"), _take(words, "after", "best")
    try:
        steps = int(_take(words, "steps", "10"))
        name = words[0] if words else ""
        config = options.parse(find(name).config_class, words[1:], f"trainers.compare {name}", __doc__ or "")
        figures = [_apart(name, config, rung, steps) for rung in (before, after)]
    except ValueError:
        return report("trainers.compare", TrainerError("--steps must be a whole number"))
    except TrainerError as error:
        return report("trainers.compare", error)
    print(table(*figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
