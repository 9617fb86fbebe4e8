"""relu(3×3 convolution of stride 2), image by image: see trainers/native/strided.c."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainers import native


class StridedReluConv(torch.autograd.Function):
    """x is (batch, inputs, rows, columns) in channels-last memory, and so is what comes out. Parameters are
    weight, bias, weight, bias …: of several layers side by side, each takes its equal piece of the batch."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *parameters: Tensor) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        weights, biases = parameters[::2], parameters[1::2]
        (batch, inputs, rows, columns), outputs = x.shape, len(biases[0])
        sizes = rows, columns, inputs, outputs
        y = torch.empty(
            (batch, outputs, (rows + 1) // 2, (columns + 1) // 2), memory_format=torch.channels_last
        )
        turned = [weight.permute(2, 3, 1, 0).contiguous() for weight in weights]
        scratch = _scratch(batch, sizes)

        def some(thread: int, first: int, last: int) -> None:
            for n, *mine in _pieces(batch, len(weights), first, last):
                native.call("strided_forth", x, turned[n], biases[n], y, scratch[thread], *mine, *sizes)

        native.shared_out(batch, some)
        ctx.save_for_backward(x, y, *weights)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, y, *weights = ctx.saved_tensors
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        (batch, inputs, rows, columns), outputs = x.shape, len(weights[0])
        sizes, threads = (rows, columns, inputs, outputs), native.thread_count(batch)
        to_x = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        sums = x.new_zeros(threads, len(weights), 9 * inputs + 1, outputs)
        turned = [w if to_x is None else w.permute(2, 3, 0, 1).contiguous() for w in weights]
        scratch = _scratch(batch, sizes)

        def some(thread: int, first: int, last: int) -> None:
            for n, *mine in _pieces(batch, len(weights), first, last):
                to = sums[thread, n].split([9 * inputs, 1])
                given = x, turned[n], y, gradient, to_x
                native.call("strided_back", *given, *to, scratch[thread], *mine, *sizes)

        native.shared_out(batch, some)
        to_weights, to_biases = torch.split(native.total(sums), [9 * inputs, 1], dim=1)
        to_weights = to_weights.view(-1, 3, 3, inputs, outputs).permute(0, 4, 3, 1, 2).contiguous()
        pairs = zip(to_weights, to_biases.flatten(1), strict=True)
        return to_x, *(part for pair in pairs for part in pair)


def _pieces(batch: int, layers: int, first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """Of samples first … last those of each layer: its number, the first and the last."""
    each = batch // layers
    for n in range(layers):
        low, high = max(first, n * each), min(last, (n + 1) * each)
        if low < high:
            yield n, low, high


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


def side_by_side(layers: Sequence[StridedConv], x: Tensor) -> Tensor:
    """x (batch, layers, channels, rows, columns) → (layers · batch, …), the first layer's outputs first."""
    if any(not layer.native for layer in layers) or x.requires_grad:
        return torch.cat([layer(x[:, n]) for n, layer in enumerate(layers)])
    parameters = [part for layer in layers for part in (layer.weight, layer.bias)]
    flat = x.transpose(0, 1).flatten(0, 1)
    out: Tensor = StridedReluConv.apply(flat, *parameters)  # type: ignore[no-untyped-call]
    return out
