"""Which kernels are faster depends on the machine, so it is measured when a run starts.

An optimization marked `measured` gives the same results up to rounding, but pays on one CPU and costs
on another (channels-last, products instead of convolutions, dense instead of sparse …). The best rung
times a few training steps with and without each and keeps what is faster here; then all that is kept is
timed against none of it, so that the choice as a whole never costs. The choice is remembered per machine
and shape; --products overrides it. bfloat16 gives other results: it is timed and offered, never chosen.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from sdk.units import gain
from trainers import native
from trainers.errors import TrainerError
from trainers.tuning import trial

if TYPE_CHECKING:
    from trainers.recipe import Data, Recipe

RULE = 3
"""Goes up when the way of choosing changes: older choices are then measured again."""
WORTH_OFFERING = 1.1
WITHOUT_BFLOAT16 = ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI")
"""Limits of oneDNN below the first CPUs that multiply bfloat16."""


@dataclass
class Choice:
    """What was measured: seconds without a product over seconds with it, and what follows."""

    ratios: dict[str, float] = field(default_factory=dict)
    chosen: list[str] = field(default_factory=list)
    together: float = 1.0
    """All that is chosen against none of it."""
    bfloat16: float | None = None
    """The same steps in bfloat16, on a CPU; None when it was not measured."""

    def sentence(self) -> str:
        shown = [
            f"{name} {gain(ratio)}{' off' * (name not in self.chosen)}" for name, ratio in self.ratios.items()
        ]
        together = f"; together {gain(self.together)}" if self.chosen else "; none pays"
        return f"products measured on this machine: {', '.join(shown)}{together} (--products overrides)"


def choose(recipe: Recipe[Any], data: Data) -> None:
    """Set the recipe's measured switches for this machine; the others stay as they are."""
    names = [item.name for item in recipe.optimizations if item.measured and recipe.on(item.name)]
    wanted = recipe.config.products
    if wanted != "auto":
        _use(recipe, names, _named(wanted, names))
        return
    if recipe.config.rung != "best" or not names:
        return
    path = _cache_folder() / f"{_key(recipe, data, names)}.json"
    found = recipe.world.gather(_remembered(path) or _measured(recipe, data, names))[0]
    if recipe.world.first:
        _remember(path, found)
        recipe.say(found.sentence())
        if (found.bfloat16 or 0) >= WORTH_OFFERING:
            recipe.say(f"bfloat16 is {gain(found.bfloat16 or 0)} here, with other rounding: --use_amp")
    _use(recipe, names, set(found.chosen))


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


def _measured(recipe: Recipe[Any], data: Data, names: list[str]) -> Choice:
    """Each product with and without, the others as chosen so far; then the choice as a whole."""
    found = Choice()
    on = recipe.switches
    none = on - set(names)
    with torch.random.fork_rng():
        for name in names:
            ratio = trial.ratio(recipe, data, on - {name}, on)
            found.ratios[name] = ratio.middle
            on = on if ratio.pays else on - {name}
        if on != none:
            together = trial.ratio(recipe, data, none, on)
            found.together, on = together.middle, on if together.pays else none
        found.chosen = sorted(on - none)
        found.bfloat16 = _bfloat16(recipe, data, on)
    recipe.switches = on
    return found


def _bfloat16(recipe: Recipe[Any], data: Data, on: frozenset[str]) -> float | None:
    """What the CPU's bfloat16 would bring, unless the user has decided already."""
    decided = recipe.config.use_amp is not None or "amp" in recipe.config.ablate
    if recipe.device.type != "cpu" or decided or not _has_bfloat16():
        return None
    return trial.ratio(recipe, data, on, on | {"amp"}).middle


def _has_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16 itself, as far as the libraries may use it."""
    held = os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper() in WITHOUT_BFLOAT16
    return not held and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def machine() -> dict[str, str]:
    """What makes one machine's kernels faster than another's."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    return {
        "cpu": _cpu_name(),
        "vectors": torch.backends.cpu.get_cpu_capability(),
        "onednn": os.environ.get("ONEDNN_MAX_CPU_ISA", "all"),
        "gpu": device,
        "torch": torch.__version__,
        "kernels": native.version(),
    }


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _key(recipe: Recipe[Any], data: Data, names: list[str]) -> str:
    """Of all that decides how fast a product is: machine, model, and the shapes of a batch."""
    options = {name: getattr(recipe.config, name) for name in recipe.shape_options}
    batch = next(iter(data.train.epoch(0)))
    shapes = {name: list(part.shape) for name, part in batch.items()}
    others = sorted(recipe.switches - set(names))
    facts = [RULE, recipe.name, str(recipe.device), torch.get_num_threads(), names, others, options, shapes]
    return hashlib.sha256(json.dumps([*facts, machine()], sort_keys=True).encode()).hexdigest()[:20]


def _cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "gpumon" / "products"


def _remembered(path: Path) -> Choice | None:
    try:
        return Choice(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _remember(path: Path, found: Choice) -> None:
    """A folder that cannot be written only means: measured again next time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".tmp{os.getpid()}")
        temporary.write_text(json.dumps(asdict(found)), encoding="utf-8")
        temporary.replace(path)
    except OSError:
        return
