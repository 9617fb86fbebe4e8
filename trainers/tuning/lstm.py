"""One LSTM layer as plain matrix products, with its backward written out.

The library's CPU kernel keeps everything a step at a time. Here the input's share of all gates is one
product before the first day, the weights' gradients are one product after the last one, and in between a
day is one product and a few passes over memory that is already there. Gates lie in blocks of
(hidden, batch), so that each block is one contiguous run.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class PlainLstm(torch.autograd.Function):
    """(batch, days, columns) → the states of all days, (days, hidden, batch)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, to_gates: Tensor, again: Tensor, bias: Tensor) -> Tensor:
        batch, days, _ = x.shape
        hidden = again.shape[1]
        inputs = x.permute(1, 2, 0).contiguous()  # (days, columns, batch)
        gates = torch.matmul(to_gates, inputs).add_(bias[:, None])  # (days, 4 · hidden, batch)
        states = x.new_empty(days, hidden, batch)
        cells = x.new_empty(days, hidden, batch)
        for day in range(days):
            gate = gates[day]
            if day:
                gate.addmm_(again, states[day - 1])
            take, keep, new, show = gate.view(4, hidden, batch)
            gate[: 2 * hidden].sigmoid_()
            new.tanh_()
            show.sigmoid_()
            torch.mul(take, new, out=cells[day])
            if day:
                cells[day].addcmul_(keep, cells[day - 1])
            torch.tanh(cells[day], out=states[day]).mul_(show)
        ctx.save_for_backward(inputs, to_gates, again, gates, states, cells)
        return states

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, to_gates, again, gates, states, cells = ctx.saved_tensors
        days, hidden, batch = states.shape
        change = torch.empty_like(gates)
        to_cell = torch.zeros_like(cells[0])
        back = again.T.contiguous()
        to_state = gradient[days - 1].clone()
        for day in reversed(range(days)):
            take, keep, new, show = gates[day].view(4, hidden, batch)
            d_take, d_keep, d_new, d_show = change[day].view(4, hidden, batch)
            squashed = torch.tanh(cells[day])
            _through_sigmoid(torch.mul(to_state, squashed), show, d_show)
            to_state.mul_(show)
            to_cell.add_(torch.ops.aten.tanh_backward(to_state, squashed))
            _through_sigmoid(to_cell * new, take, d_take)
            torch.ops.aten.tanh_backward.grad_input(to_cell * take, new, grad_input=d_new)
            if day:
                _through_sigmoid(to_cell * cells[day - 1], keep, d_keep)
                to_cell.mul_(keep)
                to_state = torch.addmm(gradient[day - 1], back, change[day])
            else:
                d_keep.zero_()
        flat = change.transpose(0, 1).reshape(4 * hidden, days * batch)
        seen = inputs.transpose(0, 1).reshape(-1, days * batch)
        before = states[:-1].transpose(0, 1).reshape(hidden, (days - 1) * batch)
        to_x = torch.matmul(to_gates.T, change).permute(2, 0, 1) if ctx.needs_input_grad[0] else None
        return to_x, flat @ seen.T, flat[:, batch:] @ before.T, flat.sum(1)


def _through_sigmoid(gradient: Tensor, value: Tensor, out: Tensor) -> None:
    torch.ops.aten.sigmoid_backward.grad_input(gradient, value, grad_input=out)


def plain_lstm(x: Tensor, to_gates: Tensor, again: Tensor, bias: Tensor) -> Tensor:
    """The function above, called as one calls a function."""
    states: Tensor = PlainLstm.apply(x, to_gates, again, bias)  # type: ignore[no-untyped-call]
    return states
