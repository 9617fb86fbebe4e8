"""A model that is watched stays the user's own: copied, pickled, scripted, freed as it would be."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import sys
import weakref
from typing import Any

import torch
from torch import nn

from sdk.auto import registry
from tests.unit.sdk.loops import Recording, SlowModel, batches


def train(model: nn.Module, steps: int = 6) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, _ in batches(steps):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()


def is_watched(model: nn.Module) -> bool:
    return "_compiled_call_impl" in vars(model)


def test_copies_and_pickles_know_nothing_of_us(auto: Recording) -> None:
    model = SlowModel()
    names = list(model.state_dict())
    plain = pickle.dumps(SlowModel().train())

    def loop() -> None:
        train(model)
        assert is_watched(model) and list(model.state_dict()) == names
        for twin in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert not is_watched(twin)
            assert torch.equal(twin(torch.ones(1, 4)), model(torch.ones(1, 4)))
        saved = io.BytesIO()
        torch.save(model, saved)
        assert b"sdk.auto" not in saved.getvalue() and b"_compiled_call_impl" not in saved.getvalue()
        assert len(pickle.dumps(model)) == len(plain)

    auto(loop)
    assert not is_watched(model), "let go of when the run ends"


def test_a_class_with_a_state_of_its_own_can_be_pickled(auto: Recording) -> None:
    model = OwnState()

    def loop() -> None:
        train(model)
        assert is_watched(model)
        for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert twin._compiled_call_impl is None
            twin(torch.ones(1, 4))

    auto(loop)


class OwnState(SlowModel):
    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))


def test_scripting_and_tracing_a_watched_model(auto: Recording) -> None:
    def loop() -> None:
        model = nn.Sequential(nn.Linear(4, 2), nn.ReLU())
        train(model)
        assert is_watched(model)
        expected = model(torch.ones(1, 4))
        assert torch.equal(torch.jit.script(model)(torch.ones(1, 4)), expected)
        assert torch.equal(torch.jit.trace(model, torch.ones(1, 4))(torch.ones(1, 4)), expected)
        exported = torch.export.export(model, (torch.ones(1, 4),))
        assert torch.equal(exported.module()(torch.ones(1, 4)), expected)

    auto(loop)


def test_a_model_that_is_freed_is_freed(auto: Recording) -> None:
    def trained() -> weakref.ref[nn.Module]:
        model = SlowModel()
        train(model)
        assert is_watched(model)
        return weakref.ref(model)

    def loop() -> None:
        gc.disable()
        try:
            assert trained()() is None, "nothing of ours holds it, not even in a cycle"
        finally:
            gc.enable()

    auto(loop)


def test_learning_ends(auto: Recording) -> None:
    def loop() -> None:
        train(SlowModel())
        steps = registry.auto()
        assert not steps.learning and sys.getprofile() is None

    auto(loop)
