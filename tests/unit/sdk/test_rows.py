"""How many rows the model takes at once: said only where it is certain."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

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


def tokens(net: Net) -> None:
    model = nn.Sequential(nn.Embedding(9, 4), net.model)
    for _ in range(STEPS):
        net.optimizer.zero_grad()
        model(torch.randint(0, 9, (3, 6))).sum().backward()
        net.optimizer.step()


def other_rows(net: Net) -> None:
    critic = nn.Linear(4, 4)
    for _ in range(STEPS):
        net.step(critic(torch.randn(6, 4))[:3])


def from_a_loader(net: Net) -> None:
    for x, y in DataLoader(tensors(), batch_size=4):
        net.step(x, y)


def several_rows_a_sample(net: Net) -> None:
    for (x,) in DataLoader(TensorDataset(torch.randn(8 * STEPS, 6, 4)), batch_size=8):
        net.step(x.flatten(0, 1))


@pytest.mark.parametrize(
    ("loop", "rows"),
    [
        (plain, 3),
        (two_modules, 3),
        (asked_one_by_one, None),
        (sequences, None),
        (tokens, 18),
        (other_rows, None),
        (from_a_loader, 4),
        (several_rows_a_sample, 48),
    ],
)
def test_rows_are_told_where_every_module_takes_as_many_once(
    auto: Recording, loop: Callable[[Net], None], rows: int | None
) -> None:
    found = auto(lambda: loop(Net()))
    assert found.config.get("shapes", {}).get("rows") == rows


def test_an_input_of_any_kind_is_left_to_the_model(auto: Recording) -> None:
    """What has a shape that cannot be read (here: a ragged tensor) disturbs nobody."""

    class Ragged(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.stack([one.sum() for one in x.unbind()]).view(-1, 1).expand(-1, 4)

    ragged, net = Ragged(), Net()

    def loop() -> None:
        for _ in range(STEPS):
            net.step(ragged(torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])))

    assert "rows" not in auto(loop).config.get("shapes", {})
