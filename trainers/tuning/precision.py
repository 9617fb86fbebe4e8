"""Mixed precision: autocast, and a gradient scaler for float16 (S1.1)."""

from __future__ import annotations

import contextlib
from typing import Any

import torch


def amp_dtype(name: str, device: torch.device) -> torch.dtype:
    """bfloat16 where the device has it (no scaler, no overflow), else float16."""
    if name != "auto":
        return torch.float16 if name == "float16" else torch.bfloat16
    if device.type == "cuda" and not torch.cuda.is_bf16_supported():
        return torch.float16
    return torch.bfloat16


class Precision:
    """The number format of forward and backward. Off: everything passes through unchanged."""

    def __init__(self, *, mixed: bool, dtype: str, device: torch.device) -> None:
        self.mixed, self.device = mixed, device
        self.dtype = amp_dtype(dtype, device)
        self.scaler = torch.amp.GradScaler(device.type, enabled=mixed and self.dtype is torch.float16)
        self.overflows = 0
        """Logs at which the scale had gone down: gradients overflowed and updates were left out."""
        self._last_scale = 0.0

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        if not self.mixed:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=self.dtype)

    def note_scale(self) -> None:
        """Called where the loss is read anyway: asking for the scale waits for the device too."""
        if self.scaler.is_enabled():
            scale = self.scaler.get_scale()
            self.overflows += scale < self._last_scale
            self._last_scale = scale


def lstm_runs_in(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether this machine has an LSTM in this format; a CPU without the instructions raises."""
    lstm, x = torch.nn.LSTM(2, 2).to(device), torch.zeros(1, 1, 2, device=device)
    try:
        with torch.autocast(device.type, dtype=dtype):
            out = lstm(x)[0]
        out.float().sum().backward()
    except RuntimeError:
        return False
    return True
