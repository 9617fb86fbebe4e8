"""One optimizer update: precision, gradient scaler, accumulation, clipping.

Accumulation weighs every micro-batch by its share of the group's samples, so that N small batches
give the gradient of one large one, a ragged tail included.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from trainers.config import TrainConfig
from trainers.tuning.optimizers import Clipper, make_optimizer


def amp_dtype(name: str, device: torch.device) -> torch.dtype:
    """bfloat16 where the device has it (no scaler, no overflow), else float16."""
    if name != "auto":
        return torch.float16 if name == "float16" else torch.bfloat16
    if device.type == "cuda" and not torch.cuda.is_bf16_supported():
        return torch.float16
    return torch.bfloat16


class Updater:
    """Holds optimizer, scaler and clipper; the engine calls `backward` and `apply`."""

    def __init__(self, model: nn.Module, config: TrainConfig, device: torch.device, switches: Any) -> None:
        self.model = model
        self.device = device
        self.amp = "amp" in switches
        self.dtype = amp_dtype(config.amp_dtype, device)
        self.set_to_none = "set_to_none" in switches
        self.optimizer = make_optimizer(
            model, lr=config.lr, weight_decay=config.weight_decay, fused="fused" in switches
        )
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.amp and self.dtype is torch.float16)
        self.clipper = Clipper(config.clip_norm, adaptive=config.adaptive_clip)
        self.norm: Tensor | None = None
        self.overflows = 0
        """Logs at which the scaler had gone down: gradients overflowed and updates were left out."""
        self._last_scale = 0.0

    def precision(self) -> contextlib.AbstractContextManager[Any]:
        if not self.amp:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=self.dtype)

    def backward(self, loss: Tensor, weight: float, *, last: bool) -> None:
        """Gradients of one micro-batch; ranks talk to each other only in the last of a group."""
        scaled = loss if weight == 1.0 else loss * weight
        quiet = getattr(self.model, "no_sync", None) if not last else None
        with quiet() if quiet else contextlib.nullcontext():
            self.scaler.scale(scaled).backward()

    def apply(self, mark: Callable[[str], None]) -> None:
        """Unscale, clip, step, zero."""
        if self.clipper.active:
            mark("grad_norm")
            self.scaler.unscale_(self.optimizer)
            self.norm = self.clipper.clip(self.model.parameters())
            mark("optimizer")
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.zero()

    def note_scale(self) -> None:
        """Called where the loss is read anyway: asking for the scale waits for the device too."""
        if self.scaler.is_enabled():
            scale = self.scaler.get_scale()
            self.overflows += scale < self._last_scale
            self._last_scale = scale

    def zero(self) -> None:
        self.optimizer.zero_grad(set_to_none=self.set_to_none)

    def state(self) -> dict[str, Any]:
        return {
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "running_norm": self.clipper.running,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        self.clipper.running = state["running_norm"]
