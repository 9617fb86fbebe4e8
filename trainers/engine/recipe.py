"""What a recipe gives the engine: data, a model, a loss, a metric. Nothing of the loop."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn

from trainers import rungs
from trainers.config import TrainConfig
from trainers.data.source import Batch, BatchSource, LoaderSettings, platform_prefetch, platform_workers
from trainers.engine.distributed import World

C = TypeVar("C", bound=TrainConfig)


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

    def __init__(self, config: C, device: torch.device) -> None:
        self.config = config
        self.device = device
        self.switches = rungs.resolve(config, self.optimizations, cuda=device.type == "cuda")
        self.world = World()
        """The ranks; the engine sets it."""
        self.skipped: dict[str, str] = {}
        """Files left out → why."""

    def on(self, name: str) -> bool:
        return name in self.switches

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
        """Metrics over a source. Accumulate on the device, read once at the end."""

    def on_epoch_end(self, model: nn.Module, epoch: int) -> None:
        """Room for what a recipe updates between epochs."""

    def state(self) -> Mapping[str, Any]:
        """What a recipe itself must keep in a checkpoint."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None: ...
