"""Ranks: `torchrun --nproc-per-node 2 -m trainers.tcn …`. No launcher of our own."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

from trainers.engine import sharding

T = TypeVar("T")
PATIENCE = timedelta(hours=2)
"""How long a rank waits for another one that decodes the data."""


@dataclass(frozen=True)
class World:
    """This process among the ranks of the launch."""

    rank: int = 0
    size: int = 1
    sharded: bool = False
    """Whether each rank holds a part of the model only (FSDP2), instead of all of it (DDP)."""

    @property
    def first(self) -> bool:
        return self.rank == 0

    def gather(self, part: T) -> list[T]:
        """Every rank's part, in order, on every rank."""
        if self.size == 1:
            return [part]
        parts: list[Any] = [None] * self.size
        distributed.all_gather_object(parts, part)
        return parts

    def largest(self, value: float) -> float:
        return max(self.gather(value))

    def in_turn(self, build: Callable[[], T]) -> T:
        """Each machine's first rank builds, then the others: what one writes, the others only read."""
        if self.size == 1:
            return build()
        local_first = int(os.environ.get("LOCAL_RANK", self.rank)) == 0
        built = build() if local_first else None
        distributed.barrier()
        return build() if built is None else built

    def mean(self, value: Tensor) -> Tensor:
        """The mean over all ranks, in place."""
        if self.size > 1:
            distributed.all_reduce(value)
            value /= self.size
        return value

    def any(self, flag: bool) -> bool:
        """Whether the flag is up on any rank."""
        if self.size == 1:
            return flag
        tensor = torch.tensor([int(flag)])
        if distributed.get_backend() == "nccl":
            tensor = tensor.cuda()
        distributed.all_reduce(tensor, op=distributed.ReduceOp.MAX)
        return bool(tensor.item())

    def joined(self, model: nn.Module, complete: bool) -> contextlib.AbstractContextManager[None]:
        """Backward passes inside exchange gradients between the ranks only when the group is complete."""
        if isinstance(model, FSDPModule):
            model.set_requires_gradient_sync(complete)
        if complete or not isinstance(model, nn.parallel.DistributedDataParallel):
            return contextlib.nullcontext()
        return model.no_sync()

    def wrap(self, model: nn.Module, device: torch.device) -> nn.Module:
        if self.size == 1:
            return model
        if self.sharded:
            return sharding.shard(model, device)
        ids = [device.index] if device.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(model, device_ids=ids)


def whole(tensor: Tensor) -> Tensor:
    """A figure computed over shards, as a plain tensor."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


@contextlib.contextmanager
def join(device: torch.device, *, sharded: bool = False) -> Iterator[World]:
    """The process group torchrun's environment describes; alone without it."""
    size = int(os.environ.get("WORLD_SIZE", 1))
    if size == 1:
        yield World()
        return
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
    try:
        yield World(distributed.get_rank(), size, sharded)
        distributed.barrier()  # a rank that leaves while another still writes can abort in gloo's threads
    finally:
        # A wrapped model still holds the group, whose threads would outlive it and abort at exit.
        gc.collect()
        distributed.destroy_process_group()
