"""LSTM with attention over the days."""

from __future__ import annotations

import contextlib

import torch
from torch import Tensor, nn

from trainers.tuning.lstm_native import attention, lstm


class AttentionLstm(nn.Module):
    """(batch, days, columns) → the next value, and how much each day counted."""

    def __init__(
        self,
        columns: int,
        hidden: int,
        layers: int,
        *,
        target: int = 0,
        pooled: bool = False,
        native: bool = False,
        float32_lstm: bool = False,
    ) -> None:
        super().__init__()
        self.target, self.pooled, self.native = target, pooled, native
        self.float32_lstm = float32_lstm
        self.lstm = nn.LSTM(columns, hidden, layers, batch_first=True)
        inner, outer = nn.Linear(hidden, hidden // 2), nn.Linear(hidden // 2, 1)
        self.score = nn.Sequential(inner, nn.Tanh(), outer)
        self.head = nn.Linear(hidden, 1)
        nn.init.zeros_(self.head.weight)  # an untrained model repeats the last value: better only counts
        nn.init.zeros_(self.head.bias)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        context, weight = self._in_kernels(x) if self.native else self._in_steps(x)
        return x[:, -1:, self.target] + self.head(context), weight

    def _in_steps(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast(x.device.type, enabled=False) if self.float32_lstm else contextlib.nullcontext():
            states, _ = self.lstm(x)
        weight = self.score(states).softmax(dim=1)
        if self.pooled:  # one product; the plain form writes all weighted states first, forth and back
            context = torch.bmm(weight.transpose(1, 2), states).squeeze(1)
        else:
            context = (weight * states).sum(dim=1)
        return context, weight.squeeze(-1)

    def _in_kernels(self, x: Tensor) -> tuple[Tensor, Tensor]:
        inner, _, outer = self.score
        return attention(inner, outer, lstm(self.lstm, x))
