"""Automatic instrumentation on loops of many shapes: what counts as a step."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from sdk import TrainingMonitor, ring
from tests.rings import trainer_rings
from tests.unit.sdk.loops import Net, Recording, Slow, Stream, tensors


def test_plain_loop(auto: Recording) -> None:
    def loop() -> None:
        net = Net()
        for _ in range(2):
            for x, y in DataLoader(Slow(), batch_size=8):
                net.step(x, y)

    found = auto(loop)
    assert found.header.head == 12
    assert found.meta["way"] == "auto" and found.meta["batch_size"] == 8
    assert all(one.samples == 8 for one in found.records)
    usual = found.records[3].phases
    assert usual["data"] >= 0.004
    assert {"forward", "backward", "optimizer", "between"} <= set(usual)
    assert not any(one.flags & ring.F_NO_UPDATE for one in found.records)


def test_validation_under_no_grad(auto: Recording) -> None:
    def loop() -> None:
        net = Net()
        train, held_out = DataLoader(tensors(), batch_size=8), DataLoader(Slow(), batch_size=8)
        for _ in range(2):
            for x, y in train:
                net.step(x, y)
            with torch.no_grad():
                for x, y in held_out:
                    net.loss(x, y)

    found = auto(loop)
    assert found.header.head == 12
    assert found.records[5].phases["validate"] >= 0.024
    assert found.records[4].phases.get("validate", 0) == 0


def test_validation_loader_with_gradients_on(auto: Recording) -> None:
    """No backward pass uses its batches: that is what makes it a validation loader."""

    def loop() -> None:
        net = Net()
        train, held_out = DataLoader(tensors(), batch_size=8), DataLoader(Slow(), batch_size=8)
        for _ in range(3):
            for x, y in train:
                net.step(x, y)
            net.model.eval()
            for x, y in held_out:
                net.loss(x, y)
            net.model.train()

    found = auto(loop)
    assert found.header.head == 18
    assert sum(one.phases.get("validate", 0) for one in found.records) >= 0.06


def test_gradient_accumulation(auto: Recording) -> None:
    def loop() -> None:
        net = Net()
        for number, (x, y) in enumerate(DataLoader(tensors(), batch_size=4)):
            (net.loss(x, y) / 4).backward()
            if number % 4 == 3:
                net.optimizer.step()
                net.optimizer.zero_grad()

    found = auto(loop)
    assert found.header.head == 3
    assert [ring.micro_batches(one.flags) for one in found.records] == [4, 4, 4]
    assert [one.samples for one in found.records] == [16, 16, 16]


def test_two_optimizers_one_step(auto: Recording) -> None:
    def loop() -> None:
        a, b = Net(), Net()
        for x, y in DataLoader(tensors(), batch_size=8):
            a.step(x, y)
            b.step(x, y)

    found = auto(loop)
    assert found.header.head == 6
    assert all(one.phases["forward"] > 0 for one in found.records)


def test_no_loader_step_is_from_optimizer_to_optimizer(auto: Recording) -> None:
    def loop() -> None:
        net = Net()
        data = torch.randn(256, 4)
        for _ in range(10):
            time.sleep(0.001)
            net.step(data[torch.randint(0, 256, (8,))])

    found = auto(loop)
    assert found.header.head == 10
    usual = found.records[4]
    assert usual.phases["between"] >= 0.001, "what the script does before it calls the model"
    assert usual.phases["forward"] > 0


def test_two_optimizers_without_a_loader(auto: Recording) -> None:
    def loop() -> None:
        a, b = Net(), Net()
        for _ in range(8):
            x = torch.randn(4, 4)
            a.step(x)
            b.step(x)

    assert auto(loop).header.head == 8


def test_one_batch_over_and_over(auto: Recording) -> None:
    def loop() -> None:
        net = Net()
        x, y = next(iter(DataLoader(tensors(), batch_size=8)))
        for _ in range(10):
            net.step(x, y)

    assert auto(loop).header.head == 10


def test_iterable_dataset_and_plain_generator(auto: Recording) -> None:
    def loop() -> None:
        net = Net()
        batches = (batch for batch in DataLoader(Stream(), batch_size=4))
        for x in batches:
            net.step(x)

    found = auto(loop)
    assert found.header.head == 8
    assert found.config["loader"]["iterable"] is True


def test_two_loaders_zipped(auto: Recording) -> None:
    def loop() -> None:
        net = Net()
        for (x, y), (other, _) in zip(
            DataLoader(tensors(), batch_size=8), DataLoader(Slow(), batch_size=8), strict=True
        ):
            net.step(x + 0 * other, y)

    found = auto(loop)
    assert found.header.head == 6
    assert found.records[3].phases["data"] >= 0.004


def test_checkpoint_and_gradient_norm(auto: Recording, tmp_path: Path) -> None:
    def loop() -> None:
        net = Net()
        for x, y in DataLoader(tensors(), batch_size=8):
            net.optimizer.zero_grad()
            net.loss(x, y).backward()
            nn.utils.clip_grad_norm_(net.model.parameters(), 1.0)
            net.optimizer.step()
            torch.save(net.model.state_dict(), tmp_path / "model.pt")

    phases = auto(loop).records[3].phases
    assert phases["checkpoint"] > 0 and phases["grad_norm"] > 0


def test_optimizer_with_a_closure(auto: Recording) -> None:
    def loop() -> None:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
        for x, _ in DataLoader(tensors(), batch_size=8):

            def closure(batch: torch.Tensor = x) -> torch.Tensor:
                optimizer.zero_grad()
                loss = model(batch).square().mean()
                loss.backward()
                return loss

            optimizer.step(closure)

    assert auto(loop).header.head == 6


def test_dataset_pass_before_training_is_no_step(auto: Recording) -> None:
    passed: list[int] = []

    def loop() -> None:
        net = Net()
        loader = DataLoader(Slow(), batch_size=8)
        mean = torch.stack([x.mean() for x, _ in loader]).mean()
        passed.append(time.monotonic_ns())
        for x, y in loader:
            net.step(x - mean, y)

    found = auto(loop)
    assert found.header.head == 6
    assert found.records[0].words[ring.W_BEGIN] >= passed[0]


def test_only_inference_is_no_run(gpumon_dir: Path) -> None:
    monitor = TrainingMonitor.auto()
    model = nn.Linear(4, 2)
    with torch.no_grad():
        for x, _ in DataLoader(tensors(), batch_size=8):
            model(x)
    monitor.stop_monitoring()
    assert trainer_rings(gpumon_dir) == []


def test_errors_of_the_loop_are_the_users(auto: Recording) -> None:
    def loop() -> None:
        net = Net()
        for number, (x, y) in enumerate(DataLoader(tensors(), batch_size=8)):
            if number == 3:
                with pytest.raises(RuntimeError):
                    torch.autograd.backward(torch.ones(2))
            net.step(x, y)

    assert auto(loop).header.head == 6


def test_a_monitor_in_the_script_takes_over(gpumon_dir: Path) -> None:
    auto = TrainingMonitor.auto()
    net = Net()
    with TrainingMonitor("own") as m:
        for x, y in m.loader(DataLoader(tensors(), batch_size=8)):
            with m.phase("forward"):
                net.step(x, y)
            m.step()
    auto.stop_monitoring()
    (found,) = trainer_rings(gpumon_dir)
    assert found.meta["way"] == "api" and found.header.head == 6


def test_classic_calls_under_auto_leave_the_richer_recording(gpumon_dir: Path) -> None:
    auto = TrainingMonitor.auto()
    net = Net()
    own = TrainingMonitor()
    own.start_monitoring()
    for x, y in DataLoader(tensors(), batch_size=8):
        net.step(x, y)
        own.log_iteration(0.001)
    own.stop_monitoring()
    auto.stop_monitoring()
    (found,) = trainer_rings(gpumon_dir)
    assert found.meta["way"] == "auto" and found.header.head == 6
    assert own.get_summary()["steps"] == 6


def test_called_twice_it_is_one_monitor(gpumon_dir: Path) -> None:
    first = TrainingMonitor.auto()
    assert TrainingMonitor.auto() is first
    first.stop_monitoring()


def test_results_are_bit_equal(gpumon_dir: Path) -> None:
    def train() -> list[bytes]:
        torch.manual_seed(3)
        net = Net()
        for _ in range(3):
            for x, y in DataLoader(tensors(), batch_size=8, shuffle=True):
                net.step(x, y)
        return [p.detach().numpy().tobytes() for p in net.model.parameters()]

    plain = train()
    monitor = TrainingMonitor.auto()
    assert train() == plain
    monitor.stop_monitoring()


def test_updates_by_hand_without_a_loader(auto: Recording) -> None:
    """Neither a DataLoader nor torch.optim."""

    def loop() -> None:
        net = Net()
        for _ in range(30):
            net.loss(torch.randn(8, 4)).backward()
            with torch.no_grad():
                for parameter in net.model.parameters():
                    assert parameter.grad is not None
                    parameter -= 0.01 * parameter.grad  # type: ignore[misc]
                    parameter.grad = None

    found = auto(loop)
    assert found.header.head == 30
    assert found.records[-1].phases["backward"] > 0


def test_a_long_accumulation_without_a_loader_is_not_updates_by_hand(auto: Recording) -> None:
    def loop() -> None:
        net = Net()
        for _ in range(5):
            for _ in range(6):
                net.loss(torch.randn(8, 4)).backward()
            net.optimizer.step()
            net.optimizer.zero_grad()

    assert auto(loop).header.head == 5
