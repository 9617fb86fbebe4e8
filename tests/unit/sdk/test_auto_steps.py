"""A step is an update of the training, whatever the style of the loop."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from sdk import ring
from tests.rings import RingFile
from tests.unit.sdk.loops import Net, Recording, tensors


def micro(found: RingFile) -> list[int]:
    return [ring.micro_batches(one.flags) for one in found.records]


def test_closures_of_lbfgs_are_one_step(auto: Recording) -> None:
    calls = []

    def loop() -> None:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=8)
        x = torch.randn(8, 4)

        def closure() -> torch.Tensor:
            calls.append(1)
            optimizer.zero_grad()
            loss = (model(x) - 1).square().mean()
            loss.backward()
            return loss

        for _ in range(5):
            optimizer.step(closure)

    found = auto(loop)
    assert len(calls) > 5
    assert found.header.head == 5 and micro(found) == [1] * 5
    phases = found.records[-1].phases
    assert phases["forward"] > 0 and phases["backward"] > 0 and phases["optimizer"] > 0


@pytest.mark.parametrize("loader", [True, False], ids=["loader", "no loader"])
def test_a_gan_is_one_step_for_both(auto: Recording, loader: bool) -> None:
    def loop() -> None:
        a, b = Net(), Net()
        batches = DataLoader(tensors(96), batch_size=8) if loader else [(torch.randn(8, 4), None)] * 12
        for x, _ in batches:
            a.optimizer.zero_grad()
            a.loss(x).backward()  # real
            a.loss(x + 1).backward()  # fake
            a.optimizer.step()
            b.step(x)

    found = auto(loop)
    assert found.header.head == 12
    assert all(one.samples == 8 * loader for one in found.records)
    assert micro(found) == [1] * 12


def test_several_critic_steps_for_one_of_the_generator(auto: Recording) -> None:
    """Every batch ends in an update; the generator's own belongs to the step of its batch."""

    def loop() -> None:
        critic, generator = Net(), Net()
        for number, (x, y) in enumerate(DataLoader(tensors(), batch_size=4)):
            critic.step(x, y)
            if number % 5 == 4:
                generator.step(x, y)

    assert auto(loop).header.head == 12


def test_actor_and_delayed_critic_without_a_loader(auto: Recording) -> None:
    def loop() -> None:
        critic, actor = Net(), Net()
        for number in range(12):
            x = torch.randn(4, 4)
            critic.step(x)
            if number % 2:
                actor.step(x)

    assert 12 <= auto(loop).header.head <= 13


def test_two_optimizers_of_one_model_are_one_step(auto: Recording) -> None:
    def loop() -> None:
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
        optimizers = [torch.optim.SGD(part.parameters(), lr=0.01) for part in model]
        for _ in range(10):
            model(torch.randn(8, 4)).sum().backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()

    assert auto(loop).header.head == 10


def test_accumulation_without_a_loader(auto: Recording) -> None:
    def loop() -> None:
        net = Net()
        for _ in range(6):
            for _ in range(40):
                (net.loss(torch.randn(8, 4)) / 40).backward()
            net.optimizer.step()
            net.optimizer.zero_grad()

    found = auto(loop)
    assert found.header.head == 6 and micro(found) == [40] * 6


def test_what_is_left_of_an_accumulation_is_no_step(auto: Recording) -> None:
    def loop() -> None:
        net = Net()
        for number, (x, y) in enumerate(DataLoader(tensors(40), batch_size=4)):
            net.loss(x, y).backward()
            if number % 4 == 3:
                net.optimizer.step()
                net.optimizer.zero_grad()

    assert auto(loop).header.head == 2


def in_place(parameters: list[torch.Tensor]) -> None:
    with torch.no_grad():
        for parameter in parameters:
            parameter -= 0.01 * parameter.grad  # type: ignore[operator]


def through_data(parameters: list[torch.Tensor]) -> None:
    for parameter in parameters:
        parameter.data += -0.01 * parameter.grad  # type: ignore[operator]


def cleared(parameters: list[torch.Tensor]) -> None:
    for parameter in parameters:
        parameter.grad = None


def zeroed(parameters: list[torch.Tensor]) -> None:
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad.data.zero_()


Change = Callable[[list[torch.Tensor]], None]


@pytest.mark.parametrize("clear", [cleared, zeroed])
@pytest.mark.parametrize("update", [in_place, through_data])
@pytest.mark.parametrize("style", ["module", "functional", "loader"])
def test_updates_by_hand_count_from_the_first_on(
    auto: Recording, style: str, update: Change, clear: Change
) -> None:
    def loop() -> None:
        model = nn.Linear(4, 1)
        parameters: list[torch.Tensor] = list(model.parameters())
        weight = torch.randn(4, 1, requires_grad=True)
        if style == "functional":
            parameters = [weight]
        batches = (
            DataLoader(tensors(720), batch_size=8) if style == "loader" else [(torch.randn(8, 4), 0)] * 90
        )
        for x, _ in batches:
            out = x @ weight if style == "functional" else model(x)
            loss = (out - 1).square().mean()
            clear(parameters)
            loss.backward()
            update(parameters)

    found = auto(loop)
    assert found.header.head == 90
    assert all(one.phases["backward"] > 0 for one in found.records)
    assert micro(found) == [1] * 90


def test_passes_that_update_nothing_are_no_updates_by_hand(auto: Recording) -> None:
    """An adversarial example needs its own backward pass, and clears the gradients afterwards."""

    def loop() -> None:
        net = Net()
        for _ in range(10):
            x = torch.randn(8, 4, requires_grad=True)
            net.loss(x).backward()
            net.optimizer.zero_grad()
            net.step((x + 0.1 * x.grad.sign()).detach())  # type: ignore[union-attr]

    assert auto(loop).header.head == 10


def test_a_gradient_scaler_that_skips(auto: Recording) -> None:
    """Its scale is too high at first, so the gradients overflow."""

    def loop() -> None:
        net = Net()
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=1000)
        for x, y in DataLoader(tensors(96), batch_size=8):
            net.optimizer.zero_grad()
            scaler.scale(1e3 * net.loss(x, y)).backward()
            scaler.step(net.optimizer)
            scaler.update()

    found = auto(loop)
    assert found.header.head == 12
    skipped = [bool(one.flags & ring.F_NO_UPDATE) for one in found.records]
    assert skipped[0] and not skipped[-1]
    assert skipped == sorted(skipped, reverse=True)


def test_an_optimizer_step_that_raises_is_forgiven(auto: Recording) -> None:
    def loop() -> None:
        net = Net()

        def closure() -> float:
            raise MemoryError

        for number, (x, y) in enumerate(DataLoader(tensors(96), batch_size=8)):
            if number == 5:
                with pytest.raises(MemoryError):
                    net.optimizer.step(closure)
            net.step(x, y)

    assert auto(loop).header.head == 12


def test_evaluation_is_never_a_step(auto: Recording) -> None:
    def loop() -> None:
        net = Net()
        for number in range(20):
            net.step(torch.randn(8, 4))
            if number % 5 == 4:
                net.model.eval()
                with torch.no_grad():
                    for _ in range(7):
                        net.loss(torch.randn(8, 4))
                net.model.train()

    found = auto(loop)
    assert found.header.head == 20
    evaluated = [bool(one.phases.get("validate")) for one in found.records]
    assert evaluated == [number % 5 == 4 for number in range(20)]


def test_an_evaluation_between_updates_by_hand_is_no_forward_pass(auto: Recording) -> None:
    """GIVEN a language model's loop without a loader, updated by hand WHEN it is evaluated after every tenth
    step THEN that time is the evaluation's, and the passes of the steps are forward."""

    def loop() -> None:
        model = nn.Linear(4, 2)
        for number in range(40):
            model.zero_grad()
            model(torch.randn(8, 4)).square().mean().backward()
            for parameter in model.parameters():
                assert parameter.grad is not None
                parameter.data.add_(parameter.grad, alpha=-0.1)
            if number % 10 == 9:
                model.eval()
                with torch.no_grad():
                    for _ in range(3):
                        model(torch.randn(8, 4))
                        time.sleep(0.005)
                model.train()

    found = auto(loop)
    assert found.header.head == 40
    assert [at % 10 for at, one in enumerate(found.records) if one.phases.get("validate")] == [9] * 4
    assert all(one.phases.get("forward", 0) < 5_000_000 for one in found.records)


@pytest.mark.parametrize("dry", [True, False], ids=["dry step", "no dry step"])
@pytest.mark.parametrize("loader", [True, False], ids=["loader", "no loader"])
def test_gradients_that_no_backward_pass_has_made(auto: Recording, loader: bool, dry: bool) -> None:
    """As private and meta learning are written: gradients from `torch.autograd.grad` or `torch.func`, put
    where the optimizer finds them; a loader made anew for every epoch."""

    def loop() -> None:
        net = Net()
        if dry:  # without gradients, as before a learning rate is scheduled
            net.optimizer.step()
        parameters = list(net.model.parameters())
        for _ in range(3):
            batches = DataLoader(tensors(48), batch_size=8) if loader else [(torch.randn(8, 4), None)] * 6
            for x, _ in batches:
                found = torch.autograd.grad(net.loss(x), parameters)
                for parameter, gradient in zip(parameters, found, strict=True):
                    parameter.grad = gradient / 2
                net.optimizer.step()

    found = auto(loop)
    assert found.header.head == 18 if dry or loader else found.header.head >= 17, (
        "the first may be one with the second"
    )
    assert not any(one.phases.get("validate") for one in found.records)
    assert all(one.phases.get("forward") for one in found.records[2:])


def test_many_epochs_with_accumulation_across_their_ends(auto: Recording) -> None:
    """As detectors are trained: an update every fourth batch, counting on across epochs."""
    updates = []

    def loop() -> None:
        net, seen = Net(), 0
        for _ in range(6):
            for x, y in DataLoader(tensors(24), batch_size=4):
                net.loss(x, y).backward()
                seen += 1
                if seen % 4 == 0:
                    updates.append(1)
                    net.optimizer.step()
                    net.optimizer.zero_grad()

    found = auto(loop)
    assert found.header.head == len(updates) == 9
    assert micro(found) == [4] * 9 and all(one.samples == 16 for one in found.records)
