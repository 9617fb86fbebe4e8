"""A dilated causal convolution with its ReLU as matrix products without a single copy.

In (channels, time, batch) memory a shift in time is an offset into the same matrix, so each tap is
one product on a view, accumulated in place. The library's convolution copies and re-orders instead.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class CausalReluConv(torch.autograd.Function):
    """relu(conv(x) [+ residual]) for kernel size 3; x is (channels, time, batch), contiguous."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, residual: Tensor | None, dilation: int
    ) -> Tensor:
        _, time, batch = x.shape
        flat = x.reshape(x.shape[0], -1)
        if residual is None:
            out = torch.addmm(bias[:, None], weight[:, :, 2], flat)
        else:
            out = torch.addmm(residual.reshape(len(weight), -1), weight[:, :, 2], flat).add_(bias[:, None])
        for tap, shift in _shifts(dilation, time, batch):
            out[:, shift:].addmm_(weight[:, :, tap], flat[:, : flat.shape[1] - shift])
        out.relu_()
        ctx.save_for_backward(flat, weight, out)
        ctx.shape, ctx.dilation, ctx.has_residual = x.shape, dilation, residual is not None
        return out.view(-1, time, batch)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        flat, weight, out = ctx.saved_tensors
        _, time, batch = ctx.shape
        gradient = torch.ops.aten.threshold_backward(gradient.reshape(len(weight), -1), out, 0)
        to_weight = torch.zeros_like(weight)
        to_weight[:, :, 2] = gradient @ flat.T
        to_x = weight[:, :, 2].T @ gradient if ctx.needs_input_grad[0] else None
        for tap, shift in _shifts(ctx.dilation, time, batch):
            late, early = gradient[:, shift:], flat[:, : flat.shape[1] - shift]
            to_weight[:, :, tap] = late @ early.T
            if to_x is not None:
                to_x[:, : flat.shape[1] - shift].addmm_(weight[:, :, tap].T, late)
        to_residual = gradient.view(-1, time, batch) if ctx.has_residual else None
        return (
            to_x.view(ctx.shape) if to_x is not None else None,
            to_weight,
            gradient.sum(1),
            to_residual,
            None,
        )


def causal_relu_conv(
    x: Tensor, weight: Tensor, bias: Tensor | None, residual: Tensor | None, dilation: int
) -> Tensor:
    """The function above, called as one calls a function."""
    out: Tensor = CausalReluConv.apply(x, weight, bias, residual, dilation)  # type: ignore[no-untyped-call]
    return out


def _shifts(dilation: int, time: int, batch: int) -> list[tuple[int, int]]:
    """(tap, offset in columns) of the taps that look back and still reach into the window."""
    return [(tap, steps * batch) for tap, steps in ((1, dilation), (0, 2 * dilation)) if steps < time]
