"""All convolutions of a TCN in one call, sample by sample: see trainers/native/causal.c."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trainers import native


class CausalStack(torch.autograd.Function):
    """(batch, time, columns) → (batch, time, outputs); parameters are weight, bias, weight, bias … with those
    of the linear head at the end."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, *parameters: Tensor) -> Tensor:
        *layers, head, head_bias = parameters
        weights, biases = layers[::2], layers[1::2]
        inputs, (batch, time, columns), width = inputs.contiguous(), inputs.shape, len(biases[0])
        taps = [weight.permute(2, 1, 0).contiguous() for weight in weights]
        kept = [inputs.new_empty(batch, time, width) for _ in weights]
        out = inputs.new_empty(batch, time, len(head))
        sizes = time, width, len(weights) // 2, len(head)

        def some(_: int, first: int, last: int) -> None:
            given = taps, biases, head, head_bias
            native.call("causal_forth", inputs, columns, *given, kept, out, first, last, *sizes)

        native.shared_out(batch, some)
        ctx.save_for_backward(inputs, head, *weights, *kept)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, head, *rest = ctx.saved_tensors
        weights, kept = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        (batch, time, columns), width = inputs.shape, len(weights[0])
        gradient = gradient.contiguous()
        turned = [weight.permute(2, 0, 1).contiguous() for weight in weights]
        threads = native.thread_count(batch)
        to_taps = [_zeros(w, threads, 3, w.shape[1], width) for w in weights]
        to_biases = [_zeros(w, threads, width) for w in weights]
        to_head = _zeros(head, threads, len(head), width)
        scratch = gradient.new_empty(threads, 3, time, width)

        def some(thread: int, first: int, last: int) -> None:
            mine = [part[thread] for part in to_taps], [part[thread] for part in to_biases], to_head[thread]
            sizes = first, last, time, width, len(weights) // 2, len(head)
            given = inputs, columns, turned, head, kept, gradient
            native.call("causal_back", *given, *mine, scratch[thread], *sizes)

        native.shared_out(batch, some)
        to_layers = _in_turn([part.sum(0).permute(2, 1, 0) for part in to_taps], to_biases)
        return None, *to_layers, to_head.sum(0), gradient.sum((0, 1))


def _zeros(like: Tensor, *shape: int) -> Tensor:
    return like.new_zeros(shape)


def _in_turn(to_weights: Sequence[Tensor], to_biases: Sequence[Tensor]) -> list[Tensor]:
    pairs = zip(to_weights, to_biases, strict=True)
    return [part for weight, bias in pairs for part in (weight.contiguous(), bias.sum(0))]


def causal_stack(inputs: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """The function above, called as one calls a function."""
    out: Tensor = CausalStack.apply(inputs, *parameters)  # type: ignore[no-untyped-call]
    return out
