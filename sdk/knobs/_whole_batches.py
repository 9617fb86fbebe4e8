"""Batches of rows in memory, taken with one indexing."""

from __future__ import annotations

import importlib
from typing import Any

from ..auto.patch import replace
from ..loader.whole_batches import collates_plainly, takes_rows
from .knob import Flip, Outcome, Place, Switch


class WholeBatches(Switch):
    """Rows of a `TensorDataset` are not taken one by one and stacked. The loader itself looks as before, and
    workers that are forked do the same."""

    name = "loader.whole_batches"
    written = "DataLoader(data, batch_size=None, sampler=BatchSampler(RandomSampler(data), size, False))"
    takes = "on"
    only = True
    needs = "no batch was put together from rows of a TensorDataset"

    def apply(self, place: Place, value: bool, outcome: Outcome) -> Flip:
        return self._indexing(outcome, [True])

    def live(self, place: Place, value: bool, outcome: Outcome) -> Flip:
        return self._indexing(outcome, [False])

    def _indexing(self, outcome: Outcome, on: list[bool]) -> Flip:
        def whole(original: Any) -> Any:
            def fetch(fetcher: Any, index: Any) -> Any:
                if not (fetcher.auto_collation and collates_plainly(fetcher.collate_fn)):
                    return original(fetcher, index)
                if not takes_rows(fetcher.dataset):
                    return original(fetcher, index)
                outcome.applied("rows of tensors are taken a batch at a time")
                return list(fetcher.dataset[index]) if on[0] else original(fetcher, index)

            return fetch

        replace(importlib.import_module("torch.utils.data._utils.fetch")._MapDatasetFetcher, "fetch", whole)
        return lambda wanted: on.__setitem__(0, wanted)
