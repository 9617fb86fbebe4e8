"""Ranks: `torchrun --nproc-per-node 2 -m trainers.tcn …`. No launcher of our own."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed, nn


@dataclass(frozen=True)
class World:
    """This process among the ranks of the launch."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        return self.rank == 0

    def share(self, value: Any) -> Any:
        """Rank 0's value on every rank: decisions (stop, metrics) are made once."""
        if self.size == 1:
            return value
        box = [value]
        distributed.broadcast_object_list(box, src=0)
        return box[0]

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

    def wrap(self, model: nn.Module, device: torch.device) -> nn.Module:
        if self.size == 1:
            return model
        ids = [device.index] if device.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(model, device_ids=ids)


@contextlib.contextmanager
def join(device: torch.device) -> Iterator[World]:
    """The process group torchrun's environment describes; alone without it."""
    size = int(os.environ.get("WORLD_SIZE", 1))
    if size == 1:
        yield World()
        return
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield World(distributed.get_rank(), size)
        distributed.barrier()  # a rank that leaves while another still writes can abort in gloo's threads
    finally:
        # A wrapped model still holds the group, whose threads would outlive it and abort at exit.
        gc.collect()
        distributed.destroy_process_group()


def unwrap(model: nn.Module) -> nn.Module:
    """The model itself: its names go into checkpoints, whoever trained it."""
    return model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
