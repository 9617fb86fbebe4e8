"""Bytes autograd keeps for backward: what a batch really costs, measurable on any device."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def saved_bytes(forward: Callable[[], Tensor]) -> int:
    """Bytes of distinct storages saved between forward and backward."""
    seen: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        seen[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        forward()
    return sum(seen.values())
