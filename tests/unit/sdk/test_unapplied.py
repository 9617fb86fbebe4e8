"""Gradients that nobody applies: known only where they are neither an optimizer's nor changed by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from sdk.probe._unapplied import Unapplied

STEPS = 30


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.features(x))
        return out


def sgd(module: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(module.parameters(), lr=0.1)


def seen(net: Net, optimizer: torch.optim.Optimizer, after: Callable[[int], Any] = lambda step: None) -> Any:
    """What is known after some steps of an optimizer; `after` is what else a step does."""
    watch: Unapplied | None = None
    for step in range(STEPS):
        optimizer.zero_grad()
        net(torch.randn(3, 4)).sum().backward()
        watch = watch or Unapplied(net, optimizer)
        optimizer.step()
        after(step)
        watch.look()
    assert watch is not None
    return watch.known


def by_hand(net: Net) -> Callable[[int], None]:
    def update(step: int) -> None:
        for one in net.features.parameters():
            assert one.grad is not None
            one.data -= 0.1 * one.grad

    return update


def now_and_then(optimizer: torch.optim.Optimizer) -> Callable[[int], None]:
    return lambda step: optimizer.step() if step % 10 == 9 else None


def test_a_last_layer_trained_alone_leaves_the_gradients_before_it() -> None:
    net = Net()
    assert seen(net, sgd(net.head)) == {
        "tensors": 0.5, "parameters": 0.69, "first": True, "names": ["features"],
    }  # fmt: skip
    assert not seen(net, sgd(net.features))["first"], "the gradient passes through the last layer"


@pytest.mark.parametrize("frozen", [True, False])
def test_nothing_is_left_of_what_is_frozen_or_trained(frozen: bool) -> None:
    net = Net()
    net.features.requires_grad_(not frozen)
    assert seen(net, sgd(net.head if frozen else net)) is None


def test_what_others_change_is_applied() -> None:
    """Another optimizer, even if it takes its turn rarely, or a hand."""
    for made in (lambda net: now_and_then(sgd(net.features)), by_hand):
        net = Net()
        assert seen(net, sgd(net.head), made(net)) is None
