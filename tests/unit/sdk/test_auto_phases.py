"""Which phase gets the time: decided by what is called, with or without gradients, not by its position in the
loop."""

from __future__ import annotations

import copy
import sys
import time
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from sdk.auto import registry
from tests.rings import Record, RingFile
from tests.unit.sdk.loops import PAUSE, Net, Recording, SlowModel, SlowNet, batches


def last(found: RingFile) -> Record:
    """A step that is neither one of the first nor the very last, which has no end."""
    return found.records[-2]


def other(record: Record) -> float:
    return record.seconds - sum(record.phases.values())


@pytest.mark.parametrize("loader", [True, False], ids=["loader", "no loader"])
def test_forward_is_the_call_of_the_model(auto: Recording, loader: bool) -> None:
    def loop() -> None:
        net = SlowNet()
        for x, _ in batches() if loader else [(torch.randn(4, 4), 0)] * 12:
            time.sleep(PAUSE)  # preparing the input is not the forward pass
            net.step(x)

    usual = last(auto(loop))
    assert usual.phases["forward"] >= PAUSE
    assert (other(usual) if loader else usual.phases["between"]) >= PAUSE


def test_several_models_and_a_loss_module(auto: Recording) -> None:
    def loop() -> None:
        first, second, loss = SlowModel(), SlowModel(), nn.MSELoss()
        optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
        for x, _ in batches():
            optimizer.zero_grad()
            loss(first(x), second(x + 1)).backward()
            optimizer.step()

    assert last(auto(loop)).phases["forward"] >= 2 * PAUSE


def test_a_function_instead_of_a_module(auto: Recording) -> None:
    def loop() -> None:
        weight = torch.randn(4, 2, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for _ in range(12):
            x = torch.randn(4, 4)
            time.sleep(PAUSE)
            (x @ weight).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    found = auto(loop)
    assert found.header.head == 12
    assert last(found).phases["forward"] >= PAUSE


def test_a_closure_is_taken_apart(auto: Recording) -> None:
    """As Lightning trains: forward and backward inside the optimizer's step."""

    def loop() -> None:
        net = SlowNet()
        for x, _ in batches():

            def closure(batch: torch.Tensor = x) -> torch.Tensor:
                loss = net.loss(batch)
                net.optimizer.zero_grad()
                loss.backward()
                return loss

            net.optimizer.step(closure)

    found = auto(loop)
    assert found.header.head == 12
    phases = last(found).phases
    assert phases["forward"] >= PAUSE and phases["forward"] > phases["optimizer"]


def test_a_copy_to_another_device(auto: Recording) -> None:
    def loop() -> None:
        model = nn.Linear(4, 2, device="meta")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, _ in batches():
            moved = x.to("meta")
            time.sleep(PAUSE)
            model(moved).sum().backward()
            optimizer.step()

    assert last(auto(loop)).phases["transfer"] >= PAUSE


def test_evaluation_without_a_loader(auto: Recording) -> None:
    """It lasts from its first call to its last; what follows is between the steps."""

    def loop() -> None:
        net = SlowNet()
        for _ in range(12):
            net.step(torch.randn(4, 4))
            net.model.eval()
            with torch.inference_mode():
                for _ in range(3):
                    net.loss(torch.randn(4, 4))
                    time.sleep(PAUSE)
            net.model.train()
            time.sleep(4 * PAUSE)

    found = auto(loop)
    assert found.header.head == 12
    phases = last(found).phases
    assert phases["validate"] >= 5 * PAUSE and phases["between"] >= 4 * PAUSE


def test_evaluation_in_training_mode(auto: Recording) -> None:
    def loop() -> None:
        net = SlowNet()
        for _ in range(8):
            net.step(torch.randn(4, 4))
            with torch.no_grad():
                net.loss(torch.randn(4, 4))

    assert last(auto(loop)).phases["validate"] >= PAUSE


def test_a_teacher_is_part_of_the_forward_pass(auto: Recording) -> None:
    def loop() -> None:
        net, teacher = Net(), SlowModel().eval()
        for x, _ in batches():
            with torch.no_grad():
                wanted = teacher(x)
            net.optimizer.zero_grad()
            (net.model(x) - wanted).square().mean().backward()
            net.optimizer.step()

    found = auto(loop)
    assert "validate" not in last(found).phases and last(found).phases["forward"] >= PAUSE


def test_a_target_network_without_a_loader(auto: Recording) -> None:
    def loop() -> None:
        net, target = Net(), SlowModel()
        for _ in range(12):
            x = torch.randn(4, 4)
            with torch.no_grad():
                wanted = target(x)
            net.optimizer.zero_grad()
            (net.model(x) - wanted).square().mean().backward()
            net.optimizer.step()

    found = auto(loop)
    assert found.header.head == 12
    assert last(found).phases["forward"] >= PAUSE and "rollout" not in last(found).phases


@pytest.mark.parametrize("mode", ["draws", "environment"])
def test_playing_is_a_rollout(auto: Recording, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is played without gradients between updates is trained on later."""
    if mode == "environment":
        monkeypatch.setitem(sys.modules, "gymnasium", types.ModuleType("gymnasium"))

    def loop() -> None:
        net = SlowNet()
        for _ in range(4):
            net.model.train(mode == "draws")
            played = []
            with torch.no_grad():
                for _ in range(3):
                    played.append(net.model(torch.randn(4, 4)))
                    if mode == "draws":
                        torch.distributions.Categorical(logits=played[-1]).sample()
                    time.sleep(PAUSE)  # the environment
            net.model.train()
            for one in played:
                net.step(one.new_ones(4, 4))

    found = auto(loop)
    assert found.header.head == 12
    played = [one.phases.get("rollout", 0) for one in found.records]
    assert played[5] >= 5 * PAUSE and played[3] == played[4] == 0
    assert found.meta["phases"] == ["rollout"]


def test_checkpoint_and_logging(auto: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writers = types.ModuleType("torch.utils.tensorboard.writer")

    class SummaryWriter:
        def add_scalar(self, *args: Any) -> None:
            time.sleep(PAUSE)

    writers.SummaryWriter = SummaryWriter  # type: ignore[attr-defined]

    class Finder:
        def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
            if name != writers.__name__:
                return None
            from importlib.machinery import ModuleSpec

            return ModuleSpec(name, self)  # type: ignore[arg-type]

        def create_module(self, spec: Any) -> Any:
            return writers

        def exec_module(self, module: Any) -> None:
            pass

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path[:-1], Finder(), *sys.meta_path[-1:]])
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", types.ModuleType("tensorboard"))
    sys.modules["torch.utils.tensorboard"].__path__ = []

    def loop() -> None:
        import importlib

        writer = importlib.import_module("torch.utils.tensorboard.writer").SummaryWriter()
        net = Net()
        for x, y in batches():
            net.step(x, y)
            writer.add_scalar("loss", 1.0, 1)
            torch.save(net.model.state_dict(), tmp_path / "model.pt")

    phases = last(auto(loop)).phases
    assert phases["log"] >= PAUSE and phases["checkpoint"] > 0
    sys.modules.pop(writers.__name__, None)


def test_collectives(auto: Recording, tmp_path: Path) -> None:
    def loop() -> None:
        dist = torch.distributed
        dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1)
        try:
            net = Net()
            for x, y in batches():
                net.loss(x, y).backward()
                for parameter in net.model.parameters():
                    dist.all_reduce(parameter.grad)
                net.optimizer.step()
                net.optimizer.zero_grad()
        finally:
            dist.destroy_process_group()

    assert last(auto(loop)).phases["collective"] > 0


def test_an_average_that_is_tried_out_now_and_then_is_evaluation(auto: Recording) -> None:
    """GIVEN a copy of the model that follows it and is first called long after the first steps WHEN much of
    the time goes there THEN it is found, and is no teacher: that would not change."""

    def loop() -> None:
        net, steps = SlowNet(), registry.auto()
        average = copy.deepcopy(net.model).eval()
        for number in range(60):
            net.step(torch.randn(4, 4))
            for mean, weight in zip(average.parameters(), net.model.parameters(), strict=True):
                mean.data.lerp_(weight.data, 0.1)
            if number % 10 == 9:
                with torch.no_grad():
                    for _ in range(4):
                        average(torch.randn(4, 4))
            if number == 25:  # as once a second
                steps.recorder.fold()
                steps.session.each_second()

    found = auto(loop)
    assert found.header.head == 60
    evaluated = [at for at, one in enumerate(found.records) if one.phases.get("validate", 0) > 3 * PAUSE]
    assert evaluated == [49, 59], "found at 29, and at 39 it may still be a teacher"


def test_what_follows_an_evaluation_is_no_part_of_it(auto: Recording) -> None:
    """GIVEN a picture that is saved after a pass without gradients THEN its time is between the steps."""

    def loop() -> None:
        net = SlowNet()
        for _ in range(12):
            net.step(torch.randn(4, 4))
            with torch.no_grad():
                net.model(torch.randn(4, 4))
            time.sleep(3 * PAUSE)

    usual = last(auto(loop))
    assert PAUSE <= usual.phases["validate"] < 3 * PAUSE <= usual.phases["between"]
