"""3×3 convolutions with fewer products, see trainers/native/winograd.c."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from trainers import native

FILTER = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]])
"""What turns a filter of three into the four numbers the products take."""


class Winograd(torch.autograd.Function):
    """x is (batch, inputs, rows, columns) in channels-last memory, and so is what comes out."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        ctx.save_for_backward(x, weight)
        return _convolved(x, _turned(weight))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        to_x = None
        if ctx.needs_input_grad[0]:
            to_x = _convolved(gradient, _turned(weight.flip(2, 3).transpose(0, 1)))
        return to_x, _weighed(x, gradient)


def _convolved(x: Tensor, turned: Tensor) -> Tensor:
    (batch, inputs, rows, columns), outputs = x.shape, turned.shape[-1]
    y = torch.empty((batch, outputs, rows, columns), memory_format=torch.channels_last)
    scratch = x.new_empty(native.thread_count(batch), native.number("winograd_scratch", inputs, outputs))

    def some(thread: int, first: int, last: int) -> None:
        sizes = first, last, rows, columns, inputs, outputs
        native.call("winograd_forth", x, turned, y, scratch[thread], *sizes)

    native.shared_out(batch, some)
    return y


def _weighed(x: Tensor, gradient: Tensor) -> Tensor:
    (batch, inputs, rows, columns), outputs = x.shape, gradient.shape[1]
    threads = native.thread_count(batch)
    sums = x.new_zeros(threads, 4, 4, inputs, outputs)
    scratch = x.new_empty(threads, native.number("winograd_scratch", inputs, outputs))

    def some(thread: int, first: int, last: int) -> None:
        sizes = first, last, rows, columns, inputs, outputs
        native.call("winograd_weigh", x, gradient, sums[thread], scratch[thread], *sizes)

    native.shared_out(batch, some)
    return torch.einsum("ap,bq,abio->oipq", FILTER, FILTER, sums.sum(0)).contiguous()


def _turned(weight: Tensor) -> Tensor:
    """(outputs, inputs, 3, 3) → (4, 4, inputs, outputs)."""
    return torch.einsum("ap,bq,oipq->abio", FILTER, FILTER, weight).contiguous()


class Conv3x3(nn.Conv2d):
    """The library's layer, or with `native` the same by fewer products."""

    def __init__(self, inputs: int, outputs: int, native_kernels: bool) -> None:
        super().__init__(inputs, outputs, 3, padding=1, bias=False)
        self.native = native_kernels and native.fits(inputs) and native.fits(outputs)

    def forward(self, x: Tensor) -> Tensor:
        if not self.native:
            return super().forward(x)
        out: Tensor = Winograd.apply(x, self.weight)  # type: ignore[no-untyped-call]
        return out
