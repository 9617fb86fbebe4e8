"""Which kernels are faster depends on the machine, so it is measured when a run starts.

An optimization marked `measured` gives the same results up to rounding, but pays on one CPU and costs
on another (channels-last, products instead of convolutions, dense instead of sparse …). The best rung
times a few training steps with and without each and keeps what is faster. The choice is remembered per
machine and shape; --products overrides it.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from sdk.units import gain
from trainers.errors import TrainerError
from trainers.tuning.optimizers import make_optimizer
from trainers.tuning.precision import Precision

if TYPE_CHECKING:
    from trainers.recipe import Data, Recipe

ROUNDS = 5
"""A choice: a median of five ignores two disturbed rounds."""
ROUND_SECONDS = 0.05
"""A round is at least this long: short enough for seconds in all, long enough for the clock."""
MARGIN = 1.02
"""On must not be slower than off by more than this: what is within noise stays on."""


def choose(recipe: Recipe[Any], data: Data) -> None:
    """Set the recipe's measured switches for this machine; the others stay as they are."""
    names = [item.name for item in recipe.optimizations if item.measured and recipe.on(item.name)]
    wanted = recipe.config.products
    if wanted != "auto":
        _use(recipe, names, _named(wanted, names))
        return
    if recipe.config.rung != "best" or not names:
        return
    path = _cache_folder() / f"{_key(recipe, names)}.json"
    ratios = recipe.world.gather(_remembered(path) or _measured(recipe, data, names))[0]
    if recipe.world.first:
        _remember(path, ratios)
    _use(recipe, names, {name for name, ratio in ratios.items() if ratio * MARGIN >= 1})
    shown = [f"{name} {gain(ratio)}{' off' * (not recipe.on(name))}" for name, ratio in ratios.items()]
    recipe.say(f"products measured on this machine: {', '.join(shown)} (--products overrides)")


def _named(words: str, names: list[str]) -> set[str]:
    if words in ("all", "none"):
        return set(names) if words == "all" else set()
    chosen = {word.strip() for word in words.split(",") if word.strip()}
    if unknown := chosen - set(names):
        hint = f"auto, all, none, or of: {', '.join(names) or 'nothing in this rung'}"
        raise TrainerError(f"--products: no {', '.join(sorted(unknown))} to choose here", hint=hint)
    return chosen


def _use(recipe: Recipe[Any], names: list[str], chosen: set[str]) -> None:
    recipe.switches = (recipe.switches - set(names)) | frozenset(chosen)


def _measured(recipe: Recipe[Any], data: Data, names: list[str]) -> dict[str, float]:
    """Name → seconds without it over seconds with it, the others as chosen so far."""
    ratios: dict[str, float] = {}
    before = recipe.switches
    with torch.random.fork_rng():
        for name in names:
            arms = []
            for on in (True, False):
                recipe.switches = before if on else before - {name}
                arms.append(_stepper(recipe, data))
            with_it, without = _interleaved(*arms)
            ratios[name] = without / with_it
            before = before if ratios[name] * MARGIN >= 1 else before - {name}
    recipe.switches = before
    return ratios


def _stepper(recipe: Recipe[Any], data: Data) -> Callable[[], None]:
    """One training step of a throw-away model over one batch of the data."""
    model = recipe.build_model().to(recipe.device).train()
    config = recipe.config
    optimizer = make_optimizer(
        model, lr=config.lr, weight_decay=config.weight_decay, fused=recipe.on("fused")
    )
    batch = next(iter(data.train.epoch(0)))
    batch = {key: part.to(recipe.device) for key, part in batch.items()}
    switches = recipe.switches
    precision = Precision(mixed=recipe.on("amp"), dtype=config.amp_dtype, device=recipe.device)

    def step() -> None:
        recipe.switches = switches
        with precision.autocast():
            loss = recipe.loss(model, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
        if recipe.device.type == "cuda":
            torch.cuda.synchronize()

    for _ in range(2):
        step()
    return step


def _interleaved(one: Callable[[], None], two: Callable[[], None]) -> tuple[float, float]:
    """Median seconds of a step of each, in turns: what disturbs one disturbs the other."""
    begun = time.perf_counter()
    one()
    count = max(1, round(ROUND_SECONDS / max(1e-6, time.perf_counter() - begun)))
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for step, found in zip((one, two), times, strict=True):
            begun = time.perf_counter()
            for _ in range(count):
                step()
            found.append((time.perf_counter() - begun) / count)
    return statistics.median(times[0]), statistics.median(times[1])


def machine() -> dict[str, str]:
    """What makes one machine's kernels faster than another's."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    return {
        "cpu": _cpu_name(),
        "vectors": torch.backends.cpu.get_cpu_capability(),
        "onednn": os.environ.get("ONEDNN_MAX_CPU_ISA", "all"),
        "gpu": device,
        "torch": torch.__version__,
    }


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _key(recipe: Recipe[Any], names: list[str]) -> str:
    shape = {name: getattr(recipe.config, name) for name in ("batch_size", *recipe.shape_options)}
    facts = [recipe.name, str(recipe.device), torch.get_num_threads(), names, shape, machine()]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:20]


def _cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "gpumon" / "products"


def _remembered(path: Path) -> dict[str, float] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return {str(name): float(ratio) for name, ratio in found.items()}


def _remember(path: Path, ratios: dict[str, float]) -> None:
    """A folder that cannot be written only means: measured again next time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".tmp{os.getpid()}")
        temporary.write_text(json.dumps(ratios), encoding="utf-8")
        temporary.replace(path)
    except OSError:
        return
