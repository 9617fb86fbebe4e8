"""Batch norm with its ReLU in fewer passes over memory: see trainers/native/norm.c."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainers import native


class NormRelu(torch.autograd.Function):
    """relu(batch norm) of channels-last x, with the mean and the variance of the batch beside it."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, gain: Tensor, bias: Tensor, small: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        x = x.contiguous(memory_format=torch.channels_last)
        count, y, guess = x.numel() // len(gain), torch.empty_like(x), x[0, :, 0, 0].contiguous()
        away, squares = (part / count for part in _sums(x, guess))
        mean, variance = guess + away, squares - away.square()
        rate = (variance + small).rsqrt()
        scale = (gain * rate).float()
        offset = (bias - mean * scale).float()

        def some(_: int, first: int, last: int) -> None:
            native.call("norm_forth", x, scale, offset, y, first, last, len(gain))

        native.shared_out(count, some)
        mean, rate = mean.float(), rate.float()
        ctx.save_for_backward(x, y, gain, mean, rate)
        variance = variance.float()
        ctx.mark_non_differentiable(mean, variance)
        return y, mean, variance

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, y, gain, mean, rate = ctx.saved_tensors
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        count, to_x = x.numel() // len(gain), torch.empty_like(x)
        total, along = _sums(x, mean, y, gradient)
        to_gain, scale = along * rate, gain * rate
        slope = -scale * rate * to_gain / count
        offset = (-scale * total / count - slope * mean).float()
        slope = slope.float()

        def some(_: int, first: int, last: int) -> None:
            native.call("norm_back", x, y, gradient, scale, slope, offset, to_x, first, last, len(gain))

        native.shared_out(count, some)
        return to_x, to_gain.float(), total.float(), None


def _sums(x: Tensor, mean: Tensor, y: Tensor | None = None, upstream: Tensor | None = None) -> Tensor:
    """Σ value and Σ value · (x − mean) by channel, in double."""
    count, channels = x.numel() // len(mean), len(mean)
    sums = torch.zeros(native.thread_count(count), 2, channels, dtype=torch.double)

    def some(thread: int, first: int, last: int) -> None:
        native.call("norm_sums", x, y, upstream, mean, *sums[thread], first, last, channels)

    native.shared_out(count, some)
    return sums.sum(0)


class BatchNormRelu(nn.BatchNorm2d):
    """relu(batch norm): the library's, or with `kernels` the same in C while training."""

    def __init__(self, channels: int, kernels: bool) -> None:
        super().__init__(channels)
        self.native = kernels and native.fits(channels)

    def forward(self, x: Tensor) -> Tensor:
        if not self.native or not self.training:
            return F.relu(super().forward(x), inplace=True)
        out: Tensor
        out, mean, variance = NormRelu.apply(x, self.weight, self.bias, self.eps)  # type: ignore[no-untyped-call]
        self._remember(mean, variance, x.numel() // len(self.weight))
        return out

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor, count: int) -> None:
        """The running figures, as the library keeps them."""
        assert self.running_mean is not None and self.running_var is not None
        assert self.num_batches_tracked is not None and self.momentum is not None
        self.num_batches_tracked.add_(1)
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(variance * (count / max(1, count - 1)), self.momentum)
