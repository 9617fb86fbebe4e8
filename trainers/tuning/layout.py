"""Memory layout of a convolutional model."""

from __future__ import annotations

import torch
from torch import nn


def channels_last(model: nn.Module) -> nn.Module:
    """The same model with channels-last weights: some CPUs and tensor cores convolve faster so."""
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]
