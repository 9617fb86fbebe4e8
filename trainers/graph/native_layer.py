"""A graph layer in one call, window by window: see trainers/native/graph.c."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from trainers import native


class Near(NamedTuple):
    """The graphs of a batch as they are stored."""

    numbers: Tensor
    """(batch, nodes, k) as int16: each node's neighbours among the nodes of its own window."""

    def means(self, x: Tensor) -> Tensor:
        """Of the raw columns of each node's neighbours. No gradient flows to x."""
        x, (batch, nodes, k) = x.contiguous(), self.numbers.shape
        means = torch.empty_like(x)

        def some(_: int, first: int, last: int) -> None:
            native.call("graph_means", x, self.numbers, means, first, last, nodes, k, x.shape[-1])

        native.shared_out(batch, some)
        return means


class NativeGraphLayer(torch.autograd.Function):
    """h is (batch, nodes, width)."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, own: Tensor, bias: Tensor, near: Tensor, numbers: Tensor) -> Tensor:
        h, (batch, nodes, k), width = h.contiguous(), numbers.shape, len(bias)
        turned = own.T.contiguous(), near.T.contiguous()
        active, out = torch.empty_like(h), torch.empty_like(h)
        scratch = h.new_empty(native.thread_count(batch), nodes, width)

        def some(thread: int, first: int, last: int) -> None:
            weights, sizes = (turned[0], bias, turned[1]), (first, last, nodes, k, width)
            native.call("graph_forth", h, numbers, *weights, active, out, scratch[thread], *sizes)

        native.shared_out(batch, some)
        ctx.save_for_backward(h, own, near, active, numbers)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        h, own, near, active, numbers = ctx.saved_tensors
        gradient, (batch, nodes, k), width = gradient.contiguous(), numbers.shape, len(own)
        threads, to_h = native.thread_count(batch), torch.empty_like(h)
        sums = h.new_zeros(threads, 2 * width + 1, width)
        scratch = h.new_empty(threads, 2, nodes, width)

        def some(thread: int, first: int, last: int) -> None:
            mine, sizes = sums[thread].split([width, width, 1]), (first, last, nodes, k, width)
            given = h, numbers, own, near, active, gradient
            native.call("graph_back", *given, to_h, *mine, scratch[thread], *sizes)

        native.shared_out(batch, some)
        to_own, to_near, to_bias = torch.split(native.total(sums), [width, width, 1])
        return to_h, to_own, to_bias.flatten(), to_near, None


def native_graph_layer(h: Tensor, own: Tensor, bias: Tensor, near: Tensor, graph: Near) -> Tensor:
    """The function above, called as one calls a function."""
    out: Tensor = NativeGraphLayer.apply(h, own, bias, near, graph.numbers)  # type: ignore[no-untyped-call]
    return out
