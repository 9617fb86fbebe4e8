"""Callbacks in the order their frameworks document; `python -m tests.frameworks` runs the real ones."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn

from sdk import ring
from sdk.callbacks import hf, lightning
from tests.rings import read_ring


def work() -> None:
    time.sleep(0.001)


def test_lightning(gpumon_dir: Path) -> None:
    callback = lightning.GpumonCallback("light")
    trainer, module, batch = SimpleNamespace(), SimpleNamespace(), [torch.ones(6, 2)]
    callback.on_fit_start(trainer, module)
    for _ in range(2):
        callback.on_train_epoch_start(trainer, module)
        for index in range(4):
            work()
            callback.on_train_batch_start(trainer, module, batch, index)
            work()
            callback.on_before_zero_grad(trainer, module, None)
            callback.on_before_backward(trainer, module, None)
            work()
            callback.on_after_backward(trainer, module)
            callback.on_before_optimizer_step(trainer, module, None)
            work()
            callback.on_train_batch_end(trainer, module, {"loss": torch.tensor(0.5)}, batch, index)
        callback.on_validation_start(trainer, module)
        work()
        callback.on_validation_end(trainer, module)
        callback.on_train_epoch_end(trainer, module)
    callback.on_fit_end(trainer, module)
    assert callback.monitor.path is not None
    found = read_ring(Path(callback.monitor.path))
    assert (found.header.head, found.meta["way"], found.header.state) == (8, "lightning", ring.S_ENDED)
    assert all(one.samples == 6 for one in found.records)
    for phase in ("data", "forward", "backward", "optimizer"):
        assert all(one.phases[phase] >= 0.001 for one in found.records), phase
    assert found.records[3].phases["validate"] >= 0.001
    assert found.records[2].phases.get("validate", 0) == 0


def test_a_batch_size_that_was_given_is_not_counted_again(gpumon_dir: Path) -> None:
    callback = lightning.GpumonCallback(batch_size=6)
    trainer, module, batch = SimpleNamespace(), SimpleNamespace(), [torch.ones(6, 2)]
    callback.on_fit_start(trainer, module)
    callback.on_train_epoch_start(trainer, module)
    for index in range(3):
        callback.on_train_batch_start(trainer, module, batch, index)
        callback.on_train_batch_end(trainer, module, None, batch, index)
    callback.on_fit_end(trainer, module)
    assert callback.monitor.path is not None
    assert [one.samples for one in read_ring(Path(callback.monitor.path)).records] == [6, 6, 6]


def test_lightning_failure(gpumon_dir: Path) -> None:
    callback = lightning.GpumonCallback()
    callback.on_fit_start(SimpleNamespace(), SimpleNamespace())
    callback.on_exception(SimpleNamespace(), SimpleNamespace(), ValueError())
    assert callback.monitor.path is not None
    assert read_ring(Path(callback.monitor.path)).header.state == ring.S_FAILED


def test_hugging_face(gpumon_dir: Path) -> None:
    callback = hf.GpumonCallback("hugging")
    arguments = SimpleNamespace(train_batch_size=4, gradient_accumulation_steps=2)
    model = nn.Linear(2, 1)
    control = SimpleNamespace(should_log=False, should_evaluate=False, should_save=False)
    callback.on_train_begin(arguments, None, control)
    callback.on_epoch_begin(arguments, None, control)
    for number in range(5):
        work()
        callback.on_step_begin(arguments, None, control)
        model(torch.ones(4, 2)).sum().backward()
        callback.on_substep_end(arguments, None, control)
        model(torch.ones(4, 2)).sum().backward()
        callback.on_pre_optimizer_step(arguments, None, control)
        work()
        callback.on_optimizer_step(arguments, None, control)
        last = (
            SimpleNamespace(should_log=True, should_evaluate=True, should_save=True)
            if number == 4
            else control
        )
        callback.on_step_end(arguments, None, last)
        if number == 4:
            work()
            callback.on_log(arguments, None, last, logs={"loss": 0.5, "name": "x"})
            work()
            callback.on_evaluate(arguments, None, last)
            work()
            callback.on_save(arguments, None, last)
    callback.on_epoch_end(arguments, None, control)
    callback.on_train_end(arguments, None, control)
    assert callback.monitor.path is not None
    found = read_ring(Path(callback.monitor.path))
    assert (found.header.head, found.meta["way"]) == (5, "hf")
    assert all(one.samples == 8 for one in found.records)
    assert all(one.phases["data"] >= 0.001 and one.phases["backward"] > 0 for one in found.records)
    assert found.records[4].phases["validate"] >= 0.001 and found.records[4].phases["checkpoint"] >= 0.001
    assert found.scalars["hf/loss"] == 0.5
    assert not hasattr(torch.autograd.backward, "__wrapped__")
