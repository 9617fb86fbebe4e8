"""All convolutions of a TCN in one call, sample by sample: see trainers/native/causal.c."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trainers import native

TURN = ((1.0, 0.0, 0.0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0.0, 0.0, 1.0))
"""Three taps as the four numbers that a pair of outputs is multiplied with."""


class CausalStack(torch.autograd.Function):
    """(batch, time, columns) → (batch, time, outputs); parameters are weight, bias, weight, bias … with those
    of the linear head at the end."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, *parameters: Tensor) -> Tensor:
        lift, *weights = parameters[:-2:2]
        biases, head, head_bias = parameters[1:-2:2], *parameters[-2:]
        inputs, (batch, time, columns), width = inputs.contiguous(), inputs.shape, len(biases[0])
        taps = lift.permute(2, 1, 0).contiguous()
        stacked = torch.stack(weights) if weights else lift.new_empty(0, width, width, 3)
        places = stacked @ lift.new_tensor(TURN).T
        kept = [inputs.new_empty(batch, time, width) for _ in biases]
        out, scratch = inputs.new_empty(batch, time, len(head)), _scratch(inputs, width)
        given = inputs, columns, taps, places.permute(0, 3, 2, 1).contiguous(), biases, head, head_bias

        def some(thread: int, first: int, last: int) -> None:
            sizes = first, last, time, width, len(weights), len(head)
            native.call("causal_forth", *given, kept, out, scratch[thread], *sizes)

        native.shared_out(batch, some)
        ctx.save_for_backward(inputs, head, places, *kept)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, head, places, *kept = ctx.saved_tensors
        (batch, time, columns), (layers, width) = inputs.shape, places.shape[:2]
        threads, gradient = native.thread_count(batch), gradient.contiguous()
        shapes = (3, columns, width), (layers, 4, width, width), (layers + 1, width), (len(head), width)
        sums = [inputs.new_zeros(threads, *shape) for shape in shapes]
        scratch, turned = _scratch(inputs, width), places.permute(0, 3, 1, 2).contiguous()

        def some(thread: int, first: int, last: int) -> None:
            mine = *(part[thread] for part in sums), scratch[thread]
            sizes = first, last, time, width, layers, len(head)
            native.call("causal_back", inputs, columns, turned, head, kept, gradient, *mine, *sizes)

        native.shared_out(batch, some)
        to_lift, to_places, to_biases, to_head = map(native.total, sums)
        to_weights = to_places.permute(0, 3, 2, 1) @ places.new_tensor(TURN)
        pairs = zip([to_lift.permute(2, 1, 0), *to_weights], to_biases, strict=True)
        to_layers = [part.contiguous() for pair in pairs for part in pair]
        return None, *to_layers, to_head, gradient.sum((0, 1))


def _scratch(inputs: Tensor, width: int) -> Tensor:
    batch, time, _ = inputs.shape
    return inputs.new_empty(native.thread_count(batch), native.number("causal_scratch", time, width))


def causal_stack(inputs: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """The function above, called as one calls a function."""
    out: Tensor = CausalStack.apply(inputs, *parameters)  # type: ignore[no-untyped-call]
    return out
