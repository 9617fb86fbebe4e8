"""What a recipe gives the loop: data, a model, a loss, a metric. Nothing of the loop itself."""

from __future__ import annotations

import importlib
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn

from trainers import RECIPES, rungs
from trainers.config import TrainConfig
from trainers.datasets.source import Batch, BatchSource, LoaderSettings, platform_prefetch, platform_workers
from trainers.engine.distributed import World
from trainers.errors import TrainerError

C = TypeVar("C", bound=TrainConfig)
T = TypeVar("T")


@dataclass(kw_only=True)
class Data:
    """The two sources of a run."""

    train: BatchSource
    validation: BatchSource


class Recipe(ABC, Generic[C]):
    """Subclass it: five methods and a few class attributes are a trainer."""

    name: ClassVar[str]
    config_class: ClassVar[type[TrainConfig]]
    optimizations: ClassVar[tuple[rungs.Optimization, ...]] = rungs.COMMON
    metric: ClassVar[tuple[str, str]] = ("loss", "min")
    """The figure that chooses the best model, and whether min or max is better."""
    workers: ClassVar[int] = 8
    """The document's --num_workers."""
    compile_mode: ClassVar[str] = "default"
    """The document's compile mode."""
    batch_unit: ClassVar[int] = 1
    shape_options: ClassVar[tuple[str, ...]] = ()
    """Options that decide how large a step's products are."""
    file_options: ClassVar[tuple[str, ...]] = ()
    """Options about the user's files; generated data does not ask for them."""
    synthetic_options: ClassVar[tuple[str, ...]] = ()
    """Options about the generated data."""

    def __init__(self, config: C, device: torch.device) -> None:
        self.config = config
        self.device = device
        self.switches = rungs.resolve(config, self.optimizations, cuda=device.type == "cuda")
        self.world = World()
        """The ranks; the loop sets it."""
        self.skipped: dict[str, str] = {}
        """Files left out → why."""

        self.split_validation = True
        """Whether each rank validates a piece of the data; the loop sets it."""

    def on(self, name: str) -> bool:
        return name in self.switches

    @property
    def plain(self) -> bool:
        """Whether a step is float32 on a CPU, whole and not compiled: what kernels of our own can do."""
        other = self.on("amp") or self.on("compile") or self.world.sharded
        return self.device.type == "cpu" and not other

    def say(self, text: str) -> None:
        """A line for people, on stderr."""
        if not self.config.quiet:
            print(f"{self.name}: {text}", file=sys.stderr, flush=True)

    def skip(self, path: Path | str, reason: str) -> None:
        """Leave a file out, count it, and tell the first few."""
        self.skipped[str(path)] = reason
        if len(self.skipped) <= 3:
            self.say(f"skipped {path}: {reason}")

    def loader_settings(self) -> LoaderSettings:
        """Workers and prefetch as asked for, else the rung's."""
        config = self.config
        workers = config.num_workers
        if workers is None:
            workers = platform_workers(self.workers) if self.on("workers") else 0
        prefetch = config.prefetch_factor or (platform_prefetch(workers) if self.on("workers") else 2)
        return LoaderSettings(num_workers=workers, prefetch_factor=prefetch, pin_memory=self.on("pinned"))

    @abstractmethod
    def build_data(self) -> Data:
        """What there is to train on."""

    @abstractmethod
    def build_model(self) -> nn.Module:
        """A fresh model."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Mean loss of a batch, on the device."""

    @abstractmethod
    def evaluate(self, model: nn.Module, source: BatchSource) -> dict[str, float]:
        """Metrics over a source. Accumulate on the device, read once at the end, `gather` over ranks."""

    def baseline(self, data: Data) -> dict[str, float]:
        """What forecasts that cost nothing reach on the validation data, as metric_name-of-forecast."""
        return {}

    def gather(self, part: T) -> list[T]:
        """What every rank found in its piece of the validation data, in order."""
        return self.world.gather(part) if self.split_validation else [part]

    def watched(self) -> dict[str, Tensor]:
        """Figures of the newest batch, still on the device; read every --norm_every steps (S2.2)."""
        return {}

    def without_effect(self) -> Iterator[tuple[str, str]]:
        """(option, why) of options that change nothing in this run."""
        if self.on("resident"):
            for name in ("num_workers", "prefetch_factor", "cache_data"):
                yield name, "batches are gathered from data kept in memory"
        elif not self.loader_settings().num_workers:
            yield "prefetch_factor", "there are no loader processes"
        if self.device.type == "cpu":
            yield "pin_memory", "there is no GPU to copy to"
        if not self.on("compile"):
            yield "compile_mode", "torch.compile is off"
        if not self.on("amp"):
            yield "amp_dtype", "mixed precision is off"
        if not any(item.measured and self.on(item.name) for item in self.optimizations):
            yield "products", "this rung has no machine-dependent optimization"
        if int(os.environ.get("WORLD_SIZE", 1)) == 1:
            yield "parallel", "there is one process only; torchrun starts several"
        for name in ("data_dir", *self.file_options) if self.config.synthetic else ():
            yield name, "--synthetic is on"
        for name in () if self.config.synthetic else ("synthetic_size", *self.synthetic_options):
            yield name, "--synthetic is off"

    def on_epoch_end(self, model: nn.Module, epoch: int) -> None:
        """Room for what a recipe updates between epochs."""

    def state(self) -> Mapping[str, Any]:
        """What a recipe itself must keep in a checkpoint."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None: ...


def find(name: str) -> type[Recipe[Any]]:
    """The recipe of this name."""
    if name not in RECIPES:
        raise TrainerError(f"no recipe {name!r}", hint=f"there are: {', '.join(RECIPES)}")
    found: type[Recipe[Any]] = importlib.import_module(f"trainers.{name}").RECIPE
    return found
