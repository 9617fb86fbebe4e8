"""Where batches come from: tensors that stay in memory (gathered by index), or a DataLoader."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from trainers.datasets.plan import Plan, PlanSampler

Batch = dict[str, Any]


class BatchSource(Protocol):
    """Batches of an epoch, from any sample on."""

    plan: Plan

    def epoch(self, epoch: int, start: int = 0) -> Iterable[Batch]: ...


class ResidentSource:
    """Batches gathered from resident tensors: no process, no copy per sample, no collate."""

    def __init__(self, gather: Callable[[Tensor], Batch], plan: Plan, device: torch.device) -> None:
        self.gather = gather
        self.plan = plan
        plan.device = device

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        for indices in self.plan.iterate(epoch, start):
            yield self.gather(indices)


@dataclass(kw_only=True)
class LoaderSettings:
    """How a DataLoader is built; illegal combinations cannot be made."""

    num_workers: int = 0
    prefetch_factor: int | None = None
    pin_memory: bool = False

    def arguments(self) -> dict[str, Any]:
        """`prefetch_factor` and `persistent_workers` raise without workers: left out then."""
        if not self.num_workers:
            return {"num_workers": 0, "pin_memory": self.pin_memory}
        return {
            "num_workers": self.num_workers,
            "pin_memory": self.pin_memory,
            "persistent_workers": True,
            "prefetch_factor": self.prefetch_factor or max(2, self.num_workers),
        }


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def platform_workers(wanted: int) -> int:
    """The document's worker number, fit for this machine: at most a core each; on Windows 2."""
    most = 2 if platform.system() == "Windows" else usable_cores()
    return min(wanted, most)


def platform_prefetch(workers: int) -> int:
    """max(2, workers); on Windows 1, where a prefetched batch is a copy too many."""
    return 1 if platform.system() == "Windows" else max(2, workers)


class LoaderSource:
    """Batches from a DataLoader whose batch sampler is the plan.

    The generator is the loader's own: an iterator that starts would otherwise draw from the global
    one, and a resumed run would differ from an uninterrupted one.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        plan: Plan,
        settings: LoaderSettings,
        collate: Callable[[list[Any]], Batch] | None = None,
        sampler: PlanSampler | None = None,
    ) -> None:
        self.plan = plan
        self.sampler = sampler or PlanSampler(plan)
        self.loader: DataLoader[Any] = DataLoader(
            dataset,
            batch_sampler=self.sampler,
            collate_fn=collate,
            generator=torch.Generator().manual_seed(0),
            **settings.arguments(),
        )

    def epoch(self, epoch: int, start: int = 0) -> Iterable[Batch]:
        self.sampler.at(epoch, start)
        return self.loader


def move_batch_to_device(batch: Any, device: torch.device | str, *, non_blocking: bool = True) -> Any:
    """A nested batch on the device. Pinned tensors are copied without waiting."""
    if isinstance(batch, Tensor):
        return batch.to(device, non_blocking=non_blocking)
    if isinstance(batch, dict):
        return {
            key: move_batch_to_device(part, device, non_blocking=non_blocking) for key, part in batch.items()
        }
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(move_batch_to_device(part, device, non_blocking=non_blocking) for part in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(move_batch_to_device(part, device, non_blocking=non_blocking) for part in batch)
    return batch


def batch_length(batch: Batch) -> int:
    """Samples in a batch: the length of its first tensor."""
    return next(len(part) for part in batch.values() if isinstance(part, Tensor))
