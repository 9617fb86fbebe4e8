"""A plan says which samples make which batch of an epoch: a pure function of seed and epoch.

Every rung takes its batches from the same plan, so a faster rung sees the same data in the same
order, and a resumed run goes on at the exact sample where it stopped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor


class Plan(ABC):
    """Base: a flat order of sample indices per epoch, cut into batches of `batch_size`."""

    def __init__(self, batch_size: int, *, drop_last: bool = False) -> None:
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.rank, self.world = 0, 1
        self.device: torch.device | None = None
        """Where index batches are wanted; an epoch's order is copied there once."""

    @abstractmethod
    def order(self, epoch: int) -> Tensor:
        """Sample indices of the whole epoch, all ranks together."""

    def share(self, rank: int, world: int) -> None:
        """Give this rank its part of every batch."""
        self.rank, self.world = rank, world

    def length(self, epoch: int) -> int:
        """Samples of the epoch that are really used, all ranks together."""
        total = len(self.order(epoch))
        step = self.batch_size if self.drop_last else self.world
        return total - total % step

    def iterate(self, epoch: int, start: int = 0) -> Iterator[Tensor]:
        """Index batches from sample `start` of the epoch on. The batch size may change on the way."""
        order, end = self.order(epoch).to(self.device or "cpu"), self.length(epoch)
        while start < end:
            batch = order[start : min(start + self.batch_size, end)]
            start += len(batch)
            part = len(batch) // self.world
            yield batch[self.rank * part : (self.rank + 1) * part]


class ShuffledPlan(Plan):
    """All samples once an epoch in a seeded random order."""

    def __init__(self, indices: Tensor | int, batch_size: int, *, seed: int, drop_last: bool = False) -> None:
        super().__init__(batch_size, drop_last=drop_last)
        self.indices = torch.arange(indices) if isinstance(indices, int) else indices
        self.seed = seed
        self._made: tuple[int, Tensor] = (-1, self.indices)

    def order(self, epoch: int) -> Tensor:
        if self._made[0] != epoch:
            generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
            self._made = (epoch, self.indices[torch.randperm(len(self.indices), generator=generator)])
        return self._made[1]


class SequentialPlan(Plan):
    """All samples in order: validation. Ranks take one piece each, and none is left out."""

    def __init__(self, indices: Tensor | int, batch_size: int) -> None:
        super().__init__(batch_size)
        self.indices = torch.arange(indices) if isinstance(indices, int) else indices

    def share(self, rank: int, world: int) -> None:
        self.indices = torch.tensor_split(self.indices, world)[rank]

    def order(self, epoch: int) -> Tensor:
        return self.indices


class PlanSampler:
    """A plan as a DataLoader's batch sampler; `at` sets where the next pass begins."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.epoch, self.start = 0, 0

    def at(self, epoch: int, start: int) -> None:
        self.epoch, self.start = epoch, start

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.plan.iterate(self.epoch, self.start):
            yield batch.tolist()

    def __len__(self) -> int:
        left = self.plan.length(self.epoch) - self.start
        return -(-left // self.plan.batch_size)
