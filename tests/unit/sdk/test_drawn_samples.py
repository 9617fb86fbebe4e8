"""That making samples draws random numbers shows in the generators, in whatever code they are drawn."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from sdk.loader._timing import FetchTimes, TimedFetcher

torch = pytest.importorskip("torch")


class Rows:
    def __init__(self, item: Callable[[int], Any]) -> None:
        self.item = item

    def __getitem__(self, at: int) -> Any:
        return self.item(at)

    def __len__(self) -> int:
        return 12


def drawn(item: Callable[[int], Any], collate: Callable[[Any], Any] = list) -> bool | None:
    times = FetchTimes()
    batches = iter(torch.utils.data.DataLoader(Rows(item), batch_size=4, shuffle=True, collate_fn=collate))
    batches._dataset_fetcher = TimedFetcher(batches._dataset_fetcher, times)
    assert times.drawn is None
    next(batches)
    assert times.scalars().get("loader.samples_drawn", 0.0) == bool(times.drawn)
    return times.drawn


def test_samples_that_are_drawn_are_told_from_those_that_are_not() -> None:
    numpy = pytest.importorskip("numpy")
    assert drawn(lambda at: torch.full((3,), at)) is False, "the order does not count"
    assert drawn(lambda at: at + torch.rand(3)) is True
    assert drawn(lambda at: at + random.random()) is True
    assert drawn(lambda at: at + numpy.random.rand()) is True


def test_what_the_collate_function_draws_is_not_what_a_sample_is() -> None:
    assert drawn(lambda at: torch.full((3,), at), lambda rows: torch.stack(rows) + torch.rand(3)) is False
