"""A graph layer over neighbour lists, with a backward of its own.

relu(own(h) + near(mean of neighbours)) + h. The mean is linear, so near(h) is averaged: a sum of k rows for
each node, forth along the neighbours and back along those who have the node as a neighbour. A dense table of
the graph multiplies by zeros for the most part, and autograd writes a tensor for every term.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainers.graph.native_layer import Near


class Neighbours(NamedTuple):
    """The graphs of a batch, nodes numbered through."""

    near: Tensor
    """The k neighbours of each node, node after node."""
    begins: Tensor
    """Where each node's neighbours begin."""
    far: Tensor
    """The nodes that have a node as their neighbour, node after node."""
    far_begins: Tensor
    """Where each node's begin; there may be none."""

    def means(self, x: Tensor) -> Tensor:
        """Of the raw columns of each node's neighbours."""
        flat = x.reshape(-1, x.shape[-1])
        sums = _sums(flat, self.near, self.begins).mul_(len(self.begins) / len(self.near))
        return sums.view_as(x)


def numbered(near: Tensor, far: Tensor, far_counts: Tensor) -> Neighbours:
    """From windows with (window, k) neighbours, the reversed lists and their lengths."""
    batch, window, k = near.shape
    first = window * torch.arange(batch, device=near.device).view(-1, 1)
    ends = far_counts.flatten().cumsum(0)
    return Neighbours(
        near=(near.flatten(1) + first).flatten(),
        begins=k * torch.arange(batch * window, device=near.device),
        far=(far + first).flatten(),
        far_begins=ends - far_counts.flatten(),
    )


class ListedGraphLayer(torch.autograd.Function):
    """h is (batch, nodes, width)."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, own: Tensor, bias: Tensor, near: Tensor, graph: Neighbours) -> Tensor:
        flat, share = h.reshape(-1, h.shape[-1]), len(graph.begins) / len(graph.near)
        active = torch.addmm(bias, flat, own.T)
        active.add_(_sums(flat @ near.T, graph.near, graph.begins), alpha=share).relu_()
        ctx.save_for_backward(flat, own, near, active, graph.far, graph.far_begins)
        ctx.share = share
        return (active + flat).view_as(h)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        flat, own, near, active, far, far_begins = ctx.saved_tensors
        outer = gradient.reshape_as(flat)
        to_own = torch.ops.aten.threshold_backward(outer, active, 0)
        to_near = _sums(to_own, far, far_begins).mul_(ctx.share)
        to_h = torch.addmm(outer, to_own, own).addmm_(to_near, near)
        return to_h.view_as(gradient), to_own.T @ flat, to_own.sum(0), to_near.T @ flat, None


def _sums(rows: Tensor, members: Tensor, begins: Tensor) -> Tensor:
    """The sum of the rows each list names."""
    return torch.embedding_bag(rows, members, begins)[0]


def listed_graph_layer(h: Tensor, own: Tensor, bias: Tensor, near: Tensor, graph: Neighbours) -> Tensor:
    """The function above, called as one calls a function."""
    out: Tensor = ListedGraphLayer.apply(h, own, bias, near, graph)  # type: ignore[no-untyped-call]
    return out


def first_graph_layer(
    x: Tensor, lift: nn.Linear, own: Tensor, bias: Tensor, near: Tensor, graph: Neighbours | Near
) -> Tensor:
    """The layer after `lift`, from the raw columns: lift, own and near in a row are one narrow product, and
    means of raw columns need no gradient."""
    columns = torch.cat([x, graph.means(x)], dim=-1)
    weight = torch.cat([own @ lift.weight, near @ lift.weight], dim=1)
    active = F.relu(F.linear(columns, weight, bias + (own + near) @ lift.bias))
    lifted: Tensor = lift(x)
    return active + lifted
