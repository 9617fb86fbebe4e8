"""FSDP2: parameters, gradients and optimizer state cut over the ranks, for models that outgrow a device.

A checkpoint holds the whole model, however it was trained.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import distributed, nn
from torch.distributed.checkpoint import state_dict as whole
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard

WHOLE = whole.StateDictOptions(full_state_dict=True, cpu_offload=True)
LOAD = whole.StateDictOptions(full_state_dict=True)


def shard(model: nn.Module, device: torch.device) -> nn.Module:
    """Each part of a list of blocks is gathered for its own turn only, the rest with the root."""
    mesh = init_device_mesh(device.type, (distributed.get_world_size(),))
    for part in model.children():
        for block in part if isinstance(part, nn.ModuleList) else ():
            fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def model_state(model: nn.Module) -> dict[str, Any]:
    """The whole model; with shards every rank must ask, and the first one gets it."""
    if not isinstance(model, FSDPModule):
        return model.state_dict()
    return whole.get_model_state_dict(model, options=WHOLE)


def load_model(model: nn.Module, state: dict[str, Any]) -> None:
    if isinstance(model, FSDPModule):
        whole.set_model_state_dict(model, state, options=LOAD)
    else:
        model.load_state_dict(state)


def optimizer_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """The whole state; with shards by parameter name."""
    if not isinstance(model, FSDPModule):
        return optimizer.state_dict()
    return dict(whole.get_optimizer_state_dict(model, optimizer, options=WHOLE))


def load_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Moments must have their parameter's shape; torch itself does not look."""
    if isinstance(model, FSDPModule):
        whole.set_optimizer_state_dict(model, optimizer, state, options=LOAD)
    else:
        optimizer.load_state_dict(state)
    for parameter, kept in optimizer.state.items():
        for name, value in kept.items():
            if isinstance(value, torch.Tensor) and value.dim() and value.shape != parameter.shape:
                raise ValueError(f"{name} of shape {tuple(value.shape)} for {tuple(parameter.shape)}")
