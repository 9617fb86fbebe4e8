"""How often a line calls something, per step."""

from __future__ import annotations

import linecache
import threading

import torch
from torch import nn

from sdk.sampling.step_profile import StepProfile

ROUNDS = 12


class Unrolled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.RNNCell(4, 8)
        self.scale = nn.Parameter(torch.ones(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(len(x), 8)
        for moment in x.unbind(1):
            state = self.cell(moment, state)
        for _ in range(ROUNDS):
            state = torch.tanh(state * self.scale)
        return state


def test_looking_up_a_module_is_not_another_call_of_it() -> None:
    """A cell called twelve times makes twelve calls, though each also looks up `self.cell`; a line without a
    module keeps all it calls."""
    model, profile = Unrolled(), StepProfile()
    assert profile.start(threading.get_ident(), 10**9)
    for _ in range(2):
        model(torch.zeros(2, ROUNDS, 4))
        profile.step()
    profile.stop()
    calls = {linecache.getline(*place).strip(): count for place, count in profile.calls().items()}
    assert calls["state = self.cell(moment, state)"] == ROUNDS
    assert calls["state = torch.tanh(state * self.scale)"] == 2 * ROUNDS
