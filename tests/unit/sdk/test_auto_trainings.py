"""When another training begins in the same process, and when it is still the same one."""

from __future__ import annotations

import gc

import pytest
import torch
from torch.utils.data import DataLoader

from sdk import ring
from sdk.auto import _optimizers
from tests.unit.sdk.loops import Net, Recording, tensors


@pytest.mark.parametrize("loader", [True, False], ids=["loader", "no loader"])
def test_two_trainings_are_two_runs(auto: Recording, loader: bool) -> None:
    def train(size: int) -> None:
        net = Net()
        batches = (
            DataLoader(tensors(size * 12), batch_size=size) if loader else [(torch.randn(size, 4), None)] * 12
        )
        for x, _ in batches:
            net.step(x)

    def loop() -> None:
        for size in (4, 6, 8):
            train(size)
            gc.collect()

    found = auto.runs(loop)
    assert [one.header.head for one in found] == [12, 12, 12]
    first = found[0].meta["run"]
    assert [one.meta["run"] for one in found] == [first, f"{first}-2", f"{first}-3"]
    assert all(one.header.state == ring.S_ENDED for one in found)
    assert all(one.config["model"]["class"] == "Linear" for one in found)
    if loader:
        assert [one.meta["batch_size"] for one in found] == [4, 6, 8]


@pytest.mark.slow
def test_many_short_trainings_alike_are_rounds_of_one(auto: Recording) -> None:
    """GIVEN federated learning, a copy of the model and a new optimizer for every client WHEN there are many
    THEN they do not become a run each, too short to say anything about."""

    def loop() -> None:
        for _ in range(12):
            net = Net()
            for _ in range(6):
                net.step(torch.randn(8, 4))
            gc.collect()

    assert [one.header.head for one in auto.runs(loop)] == [6] * 7 + [30]


def test_optimizers_that_take_turns_are_one_training(auto: Recording) -> None:
    """As soft actor-critic is written: the critic learns in every round, the actor and the temperature twice
    in every other one."""

    def loop() -> None:
        critic, actor, temperature = Net(), Net(), Net()
        for number in range(1, 24):
            critic.step(torch.randn(8, 4))
            if number % 2 == 0:
                for _ in range(2):
                    actor.step(torch.randn(8, 4))
                    temperature.step(torch.randn(8, 4))

    assert auto(loop).header.head >= 23


def test_who_returns_was_not_over(auto: Recording) -> None:
    """GIVEN a second model that is made after the first has learnt WHEN the two then take turns THEN they are
    not a run for every turn."""

    def loop() -> None:
        first = Net()
        for _ in range(12):
            first.step(torch.randn(8, 4))
        second = Net()
        for _ in range(8):
            for net in (second, first):
                for _ in range(6):
                    net.step(torch.randn(8, 4))

    found = auto.runs(loop)
    assert len(found) == 2 and found[0].header.head == 12
    assert sum(one.header.head for one in found) == 12 + 8 * 12


def test_models_made_together_and_trained_one_after_the_other_are_two_runs(
    auto: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_optimizers, "_SHORT_NS", 0)

    def loop() -> None:
        for net in (Net(), Net()):
            for _ in range(60):
                net.step(torch.randn(8, 4))

    assert [one.header.head for one in auto.runs(loop)] == [60, 60]


def test_another_optimizer_for_the_same_model_is_the_same_run(auto: Recording) -> None:
    def loop() -> None:
        net = Net()
        for _ in range(3):
            net.optimizer = torch.optim.SGD(net.model.parameters(), lr=0.1)
            for x, y in DataLoader(tensors(), batch_size=8):
                net.step(x, y)

    assert auto(loop).header.head == 18
