"""Which loaders could take their batches whole, and that these batches are the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, TensorDataset, random_split  # noqa: E402

from sdk.loader import watch  # noqa: E402
from sdk.loader._timing import TimedCollate  # noqa: E402
from sdk.loader.whole_batches import collates_plainly, takes_rows, whole_batch_seconds  # noqa: E402

ROWS = TensorDataset(torch.arange(60.0).reshape(20, 3), torch.arange(20))


class Own(TensorDataset):
    """A row of it is whatever its author says."""


class Same(Dataset[Any]):
    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> Any:
        return ROWS[index]


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        Subset(ROWS, range(5, 15)),
        Subset(Subset(ROWS, [3, 1, 2]), [2, 0]),
        random_split(ROWS, [5, 15])[1],
    ],
)
def test_an_indexing_gives_the_batch_of_the_rows(data: Any) -> None:
    assert takes_rows(data)
    for (rows, labels), at in zip(DataLoader(data, batch_size=4), range(0, len(data), 4), strict=True):
        whole, named = data[list(range(at, min(at + 4, len(data))))]
        assert torch.equal(rows, whole) and torch.equal(labels, named)


@pytest.mark.parametrize(
    "data",
    [
        Own(torch.ones(20, 3)),
        Same(),
        ConcatDataset([ROWS, ROWS]),
        TensorDataset(torch.ones(20, 3, requires_grad=True)),
        TensorDataset(torch.eye(20).to_sparse()),
        [1.0, 2.0],
    ],
)
def test_others_are_left_alone(data: Any) -> None:
    assert not takes_rows(data) and whole_batch_seconds(DataLoader(data, batch_size=2)) is None


def test_only_torchs_own_collate_can_be_left_out() -> None:
    plain = DataLoader(ROWS, batch_size=4)
    assert collates_plainly(plain.collate_fn) and collates_plainly(TimedCollate(plain.collate_fn))
    assert whole_batch_seconds(DataLoader(ROWS, batch_size=4, collate_fn=list)) is None
    assert whole_batch_seconds(DataLoader(ROWS, batch_size=None)) is None


def test_it_is_timed_once_for_a_data_set_and_draws_no_random_number(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    real = whole_batch_seconds

    def counted(loader: Any) -> float | None:
        calls.append(loader)
        return real(loader)

    monkeypatch.setattr(watch, "whole_batch_seconds", counted)
    loaders = watch.LoaderWatch(dict, lambda: None)
    before = torch.get_rng_state()
    for _ in range(3):
        loaders.loader = DataLoader(ROWS, batch_size=64, shuffle=True)  # made anew every epoch
        seconds = loaders.whole_batch_seconds()
        assert seconds is not None and 0 < seconds < 1
    assert len(calls) == 1 and torch.equal(torch.get_rng_state(), before)
    loaders.loader = SimpleNamespace(dataset=Same(), batch_sampler=None, collate_fn=None)
    assert loaders.whole_batch_seconds() is None
