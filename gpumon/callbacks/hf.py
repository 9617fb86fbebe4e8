"""Hugging Face: ``transformers.Trainer(..., callbacks=[GpumonCallback("run")])``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ..ours import sdk

if TYPE_CHECKING:
    from sdk.callbacks.hf import GpumonCallback
else:
    GpumonCallback = importlib.import_module(f"{sdk().__name__}.callbacks.hf").GpumonCallback

__all__ = ["GpumonCallback"]
