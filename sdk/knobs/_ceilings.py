"""The most a remedy could bring: a part of the loop for nothing, in a process that is thrown away."""

from __future__ import annotations

import os
from typing import Any

from ..auto.patch import replace
from ._loader import Loaders, NumWorkers
from ._side_jobs import LogEvery
from .knob import CHANGES_TRAINING, Outcome, Place, Switch, attempt

FEW = 2


class FreeData(Switch):
    """The first batch again and again, in epochs as long as before."""

    name = "free.data"
    effect = CHANGES_TRAINING
    only = True
    needs = "no DataLoader was iterated"

    def apply(self, place: Place, value: bool, outcome: Outcome) -> None:
        def alone(loader: Any) -> None:
            attempt(outcome, NumWorkers().change, loader, 0, Outcome(""))

        Loaders.of(place.torch).changes.append(alone)
        batches: dict[int, Any] = {}

        def again(original: Any) -> Any:
            def __next__(iterator: Any) -> Any:
                data = id(iterator._dataset)
                if not place.torch.is_grad_enabled():
                    return original(iterator)
                if data not in batches:
                    batches[data] = original(iterator)
                    outcome.applied("the first batch again and again")
                    return batches[data]
                if iterator._num_yielded >= _length(iterator):
                    raise StopIteration
                iterator._num_yielded += 1
                return batches[data]

            return __next__

        replace(place.torch.utils.data.dataloader._BaseDataLoaderIter, "__next__", again)


def _length(iterator: Any) -> float:
    """Batches of an epoch; of a stream nobody knows."""
    try:
        return len(iterator)
    except TypeError:
        return float("inf")


class FreePasses(Switch):
    """Batches of two samples reach the model: its passes take next to nothing, and everything else goes on.
    Two, because a normalization over the batch needs more than one."""

    name = "free.passes"
    effect = CHANGES_TRAINING
    only = True
    needs = "no DataLoader gave a batch of more than two samples"

    def apply(self, place: Place, value: bool, outcome: Outcome) -> None:
        def cut(original: Any) -> Any:
            def __next__(iterator: Any) -> Any:
                batch = original(iterator)
                if not place.torch.is_grad_enabled():
                    return batch
                found = _first(batch, place.torch.Tensor)
                if found is not batch:
                    outcome.applied(f"batches are cut to {FEW} samples")
                return found

            return __next__

        replace(place.torch.utils.data.dataloader._BaseDataLoaderIter, "__next__", cut)


def _first(batch: Any, tensor: type) -> Any:
    """The first samples of a batch in its own shape; the same object where it has no more."""
    if isinstance(batch, tensor):
        found: Any = batch
        return found[:FEW] if found.dim() and len(found) > FEW else batch
    if isinstance(batch, dict):
        cut = {key: _first(one, tensor) for key, one in batch.items()}
        return cut if any(cut[key] is not batch[key] for key in cut) else batch
    if type(batch) in (list, tuple):
        parts = [_first(one, tensor) for one in batch]
        return type(batch)(parts) if any(a is not b for a, b in zip(parts, batch, strict=True)) else batch
    return batch


class FreeEvaluation(Switch):
    """What is read without gradients ends after its first batch."""

    name = "free.evaluation"
    effect = CHANGES_TRAINING
    only = True
    needs = "no DataLoader was read without gradients beyond its first batch"

    def apply(self, place: Place, value: bool, outcome: Outcome) -> None:
        def short(original: Any) -> Any:
            def __next__(iterator: Any) -> Any:
                if iterator._num_yielded and not place.torch.is_grad_enabled():
                    outcome.applied("an evaluation reads one batch")
                    raise StopIteration
                return original(iterator)

            return __next__

        replace(place.torch.utils.data.dataloader._BaseDataLoaderIter, "__next__", short)


class FreeCheckpoints(Switch):
    """A file is saved once, because the script may do something with it."""

    name = "free.checkpoints"
    effect = CHANGES_TRAINING
    only = True
    needs = "`torch.save` did not save a file twice"

    def apply(self, place: Place, value: bool, outcome: Outcome) -> None:
        def once(original: Any) -> Any:
            def save(what: Any, where: Any, *args: Any, **kwargs: Any) -> None:
                if isinstance(where, (str, os.PathLike)) and os.path.exists(where):
                    return outcome.applied("a file that is there is not saved again")
                original(what, where, *args, **kwargs)
                return None

            return save

        replace(place.torch, "save", once)


class FreeLogging(LogEvery):
    """No step at all is logged."""

    name = "free.logging"
    effect = CHANGES_TRAINING

    def read(self, text: str) -> int:
        return 1 << 60  # one step in so many
