"""relu(3×3 convolution of stride 2), image by image: see trainers/native/strided.c."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainers import native


class StridedReluConv(torch.autograd.Function):
    """x is (batch, inputs, rows, columns) in channels-last memory, and so is what comes out."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        (batch, inputs, rows, columns), outputs = x.shape, len(bias)
        sizes = rows, columns, inputs, outputs
        y = torch.empty(
            (batch, outputs, (rows + 1) // 2, (columns + 1) // 2), memory_format=torch.channels_last
        )
        turned, scratch = weight.permute(2, 3, 1, 0).contiguous(), _scratch(batch, sizes)

        def some(thread: int, first: int, last: int) -> None:
            native.call("strided_forth", x, turned, bias, y, scratch[thread], first, last, *sizes)

        native.shared_out(batch, some)
        ctx.save_for_backward(x, weight, y)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, y = ctx.saved_tensors
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        (batch, inputs, rows, columns), outputs = x.shape, len(weight)
        sizes, threads = (rows, columns, inputs, outputs), native.thread_count(batch)
        to_x = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        sums = x.new_zeros(threads, 9 * inputs + 1, outputs)
        turned, scratch = weight.permute(2, 3, 0, 1).contiguous(), _scratch(batch, sizes)

        def some(thread: int, first: int, last: int) -> None:
            mine = sums[thread].split([9 * inputs, 1])
            given = x, turned, y, gradient, to_x
            native.call("strided_back", *given, *mine, scratch[thread], first, last, *sizes)

        native.shared_out(batch, some)
        to_weight, to_bias = sums.sum(0).split([9 * inputs, 1])
        return to_x, to_weight.view(3, 3, inputs, outputs).permute(3, 2, 0, 1).contiguous(), to_bias.flatten()


def _scratch(batch: int, sizes: tuple[int, int, int, int]) -> Tensor:
    return torch.empty(native.thread_count(batch), native.number("strided_scratch", *sizes))


class StridedConv(nn.Conv2d):
    """relu(conv(x)): the library's, or with `kernels` the same in C where the widths fit."""

    def __init__(self, inputs: int, outputs: int, kernels: bool) -> None:
        super().__init__(inputs, outputs, 3, stride=2, padding=1)
        # the gradient of x has vectors of input channels; images need none
        self.native = kernels and native.fits(outputs) and (inputs == 3 or native.fits(inputs))

    def forward(self, x: Tensor) -> Tensor:
        if not self.native or (self.in_channels == 3 and x.requires_grad):
            return F.relu(super().forward(x))
        out: Tensor = StridedReluConv.apply(x, self.weight, self.bias)  # type: ignore[no-untyped-call]
        return out
