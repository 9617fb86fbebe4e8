"""The batch of a loop without a loader: said only where it is certain."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from tests.unit.sdk.loops import Net, Recording, tensors

STEPS = 12


def plain(net: Net) -> None:
    for _ in range(STEPS):
        net.step(torch.randn(3, 4))


def two_modules(net: Net) -> None:
    embed = nn.EmbeddingBag(9, 4)
    for _ in range(STEPS):
        net.step(embed(torch.randint(0, 9, (3, 6))))


def asked_one_by_one(net: Net) -> None:
    for _ in range(STEPS):
        net.optimizer.zero_grad()
        torch.stack([net.loss(torch.randn(1, 4)) for _ in range(5)]).sum().backward()
        net.optimizer.step()


def sequences(net: Net) -> None:
    for _ in range(STEPS):
        net.step(torch.randn(3, 7, 4))


def other_rows(net: Net) -> None:
    critic = nn.Linear(4, 4)
    for _ in range(STEPS):
        net.step(critic(torch.randn(6, 4))[:3])


def from_a_loader(net: Net) -> None:
    for x, y in DataLoader(tensors(), batch_size=4):
        net.step(x, y)


@pytest.mark.parametrize(
    ("loop", "rows"),
    [
        (plain, 3),
        (two_modules, 3),
        (asked_one_by_one, None),
        (sequences, None),
        (other_rows, None),
        (from_a_loader, None),
    ],
)
def test_rows_are_told_where_every_module_takes_as_many_once(
    auto: Recording, loop: Callable[[Net], None], rows: int | None
) -> None:
    found = auto(lambda: loop(Net()))
    assert found.config.get("shapes", {}).get("rows") == rows
