"""Which of several loaders is the training's, and whether the author or a library made it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from sdk.loader.maker import is_authors
from tests.unit.sdk.loops import Net, Recording, tensors


def test_a_loader_that_nothing_is_trained_on_is_not_shown(auto: Recording) -> None:
    """Importances are computed at the end, with a loader of its own and gradients on."""

    session: Any = auto.monitor._session

    def loop() -> None:
        net = Net()
        for _ in range(2):
            for x, y in DataLoader(tensors(), batch_size=8):
                net.step(x, y)
        for x, y in DataLoader(tensors(), batch_size=24):
            net.loss(x, y)
        session.probe.refresh_loader()

    assert auto(loop).meta["config"]["loader"]["batch_size"] == 8


def test_a_new_loader_is_shown_once_it_is_trained_on(auto: Recording) -> None:
    seen: list[Any] = []
    session: Any = auto.monitor._session

    def loop() -> None:
        net = Net()
        for size in (8, 12):
            for x, y in DataLoader(tensors(), batch_size=size):
                net.step(x, y)
                seen.append(session.loaders.loader.batch_size)

    auto(loop)
    assert seen == [8] * 6 + [12] * 4


class Own(DataLoader[Any]):
    def __init__(self, data: Any) -> None:
        super().__init__(data, batch_size=4)


def test_the_author_made_it(auto: Recording) -> None:
    assert is_authors(DataLoader(tensors())) is True
    assert is_authors(Own(tensors())) is True, "a subclass's constructor is no maker"


@pytest.mark.parametrize("subclass", [False, True])
def test_a_library_made_it(auto: Recording, subclass: bool) -> None:
    library: dict[str, Any] = {"made": Own if subclass else DataLoader}
    source = "def loader(data): return made(data)"
    exec(compile(source, "/usr/lib/python3/site-packages/library/loop.py", "exec"), library)
    assert is_authors(library["loader"](tensors())) is False


def test_one_made_before_is_nobodys() -> None:
    assert is_authors(DataLoader(torch.utils.data.TensorDataset(torch.zeros(4)))) is None


def test_what_workers_of_an_evaluation_cost_to_start(auto: Recording) -> None:
    session: Any = auto.monitor._session
    starts = session.loaders.evaluation_starts

    def loop() -> None:
        net = Net()
        held_out = DataLoader(tensors(), batch_size=8, num_workers=1)
        stays = DataLoader(tensors(), batch_size=8, num_workers=1, persistent_workers=True)
        for _ in range(3):
            for x, y in DataLoader(tensors(), batch_size=8):
                net.step(x, y)
            with torch.no_grad():
                for one in (held_out, stays):
                    for x, y in one:
                        net.loss(x, y)

    found = auto(loop)
    told = starts.scalars()
    assert told["loader.evaluation_starts"] == 4, "three, and once those that stay"
    assert 0.002 < told["loader.evaluation_start_s"] < 5.0
    spent = sum(one.phases.get("validate", 0) for one in found.records)
    assert told["loader.evaluation_start_s"] * 4 <= spent + 0.001
