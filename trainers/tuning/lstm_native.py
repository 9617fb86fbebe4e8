"""An LSTM layer and attention over its states, in one call each: see lstm.c and attention.c of native."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from trainers import native


class Lstm(torch.autograd.Function):
    """(batch, steps, columns) → states (batch, steps, hidden). No gradient flows to x."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, to_gates: Tensor, recurrent: Tensor, bias: Tensor, other_bias: Tensor
    ) -> Tensor:
        x, (batch, steps, columns), hidden = x.contiguous(), x.shape, recurrent.shape[1]
        weight, both = _panels(torch.cat([recurrent, to_gates], dim=1).T), bias + other_bias
        gates = x.new_empty(batch, steps, 4 * hidden)
        cells, states = x.new_empty(batch, steps, hidden), x.new_empty(batch, steps, hidden)
        sizes = steps, columns, hidden

        def some(_: int, first: int, last: int) -> None:
            native.call("lstm_forth", x, weight, both, gates, cells, states, first, last, *sizes)

        native.shared_out(batch, some)
        ctx.save_for_backward(x, recurrent, gates, cells, states)
        return states

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, recurrent, gates, cells, states = ctx.saved_tensors
        (batch, steps, columns), hidden = x.shape, recurrent.shape[1]
        gradient, turned, threads = gradient.contiguous(), _panels(recurrent), native.thread_count(batch)
        sums = x.new_zeros(threads, hidden + columns + 1, 4 * hidden)
        scratch = x.new_empty(threads, native.number("lstm_scratch", steps, hidden))

        def some(thread: int, first: int, last: int) -> None:
            mine = sums[thread].split([hidden, columns, 1])
            sizes = first, last, steps, columns, hidden
            native.call(
                "lstm_back", x, turned, gates, cells, states, gradient, *mine, scratch[thread], *sizes
            )

        native.shared_out(batch, some)
        recurrent, to_gates, bias = sums.sum(0).T.split([hidden, columns, 1], dim=1)
        bias = bias.flatten()  # both biases have it, each in memory of its own: clipping scales in place
        return None, to_gates.contiguous(), recurrent.contiguous(), bias, bias.clone()


def _panels(weight: Tensor) -> Tensor:
    """(terms, outputs) → (panel, term, output of the panel)."""
    panel = native.number("panel")
    return weight.reshape(len(weight), -1, panel).transpose(0, 1).contiguous()


def lstm(layer: nn.LSTM, x: Tensor) -> Tensor:
    """All states of a one-layer LSTM that begins with zeros."""
    states: Tensor = Lstm.apply(  # type: ignore[no-untyped-call]
        x, layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0
    )
    return states


class Attention(torch.autograd.Function):
    """states (batch, steps, hidden) → context (batch, hidden) and the weight of each step."""

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, first: Tensor, bias: Tensor, second: Tensor, second_bias: Tensor
    ) -> tuple[Tensor, Tensor]:
        states, (batch, steps, hidden), width = states.contiguous(), states.shape, len(bias)
        turned = first.T.contiguous()
        inner, weight = states.new_empty(batch, steps, width), states.new_empty(batch, steps)
        context = states.new_empty(batch, hidden)

        def some(_: int, begin: int, end: int) -> None:
            given, sizes = (states, turned, bias, second), (begin, end, steps, hidden, width)
            native.call("attention_forth", *given, inner, weight, context, *sizes)

        native.shared_out(batch, some)
        ctx.save_for_backward(states, first, second, second_bias, inner, weight)
        ctx.mark_non_differentiable(weight)
        return context, weight

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        states, first, second, second_bias, inner, weight = ctx.saved_tensors
        gradient, (batch, steps, hidden), width = gradient.contiguous(), states.shape, len(first)
        threads, to_states = native.thread_count(batch), torch.empty_like(states)
        sums = states.new_zeros(threads, hidden + 2, width)
        scratch = states.new_empty(threads, steps, width)

        def some(thread: int, begin: int, end: int) -> None:
            given, mine = (states, first, second, inner, weight, gradient), sums[thread].split([hidden, 1, 1])
            sizes = begin, end, steps, hidden, width
            native.call("attention_back", *given, to_states, *mine, scratch[thread], *sizes)

        native.shared_out(batch, some)
        to_first, to_bias, to_second = sums.sum(0).split([hidden, 1, 1])
        # a softmax does not see what is added to all scores
        return to_states, to_first.T.contiguous(), to_bias.flatten(), to_second, torch.zeros_like(second_bias)


def attention(first: nn.Module, second: nn.Module, states: Tensor) -> tuple[Tensor, Tensor]:
    """The function above, from its two linear layers."""
    found: tuple[Tensor, Tensor] = Attention.apply(  # type: ignore[no-untyped-call]
        states, first.weight, first.bias, second.weight, second.bias
    )
    return found
