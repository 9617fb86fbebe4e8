"""Knobs of the DataLoader, set on a loader when it is first iterated with gradients on."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from ..auto.patch import replace
from .knob import APPLIED, CHANGES_TRAINING, Knob, Number, Outcome, Place, Switch, attempt, no_accelerator

_DONE = "_gpumon_knobs"
_DRAWS = "_gpumon_draws"
"""Marks a loader that draws a random number at the begin of each epoch, as it did without our knob."""
_NEEDS = "no DataLoader was iterated"
_RANDOM = "the data set draws random numbers: each worker has its own"


class Loaders:
    """The one patch of `DataLoader.__iter__` that all knobs of a loader share, in their order."""

    def __init__(self, torch: Any) -> None:
        self._grad_enabled = torch.is_grad_enabled
        self._draw: Callable[..., Any] = lambda **where: torch.empty((), dtype=torch.int64).random_(**where)
        """As a loader draws a seed for its workers."""
        self.changes: list[Callable[[Any], None]] = []
        replace(torch.utils.data.DataLoader, "__iter__", self._iter)

    @classmethod
    def of(cls, torch: Any) -> Loaders:
        """That of this process."""
        own = vars(torch.utils.data.DataLoader)
        if _DONE not in own:
            setattr(torch.utils.data.DataLoader, _DONE, cls(torch))
        found: Loaders = vars(torch.utils.data.DataLoader)[_DONE]
        return found

    def _iter(self, original: Any) -> Any:
        def __iter__(loader: Any) -> Any:
            if self._grad_enabled() and _DONE not in vars(loader):
                vars(loader)[_DONE] = True
                for change in self.changes:
                    change(loader)
            if vars(loader).get(_DRAWS) and loader._iterator is not None:
                self._draw(generator=loader.generator)
            return original(loader)

        return __iter__


class LoaderKnob(Knob):
    """Changes a loader before its first iterator is made. Loaders read under `no_grad` are left alone: they
    evaluate."""

    needs = _NEEDS

    def apply(self, place: Place, value: Any, outcome: Outcome) -> None:
        Loaders.of(place.torch).changes.append(
            lambda loader: attempt(outcome, self.change, loader, value, outcome)
        )

    @abstractmethod
    def change(self, loader: Any, value: Any, outcome: Outcome) -> None:
        """Change this loader, or say why it stays as it is."""


class NumWorkers(LoaderKnob, Number):
    name = "loader.num_workers"
    written = "DataLoader(…, num_workers={value})"
    takes = "0, 1, 2, …"
    unless = _RANDOM
    most = 512

    def change(self, loader: Any, value: int, outcome: Outcome) -> None:
        if loader.num_workers == value:
            return outcome.already(f"the loader has {value}")
        if _is_iterable(loader) and max(value, loader.num_workers) > 1:
            return outcome.refused("the data set is iterable: other workers would share it out differently")
        before, loader.num_workers = loader.num_workers, value
        if value:
            loader.prefetch_factor = loader.prefetch_factor or 2
        else:
            loader.prefetch_factor = loader.multiprocessing_context = None
            vars(loader)["persistent_workers"] = False
        return outcome.applied(f"{before} → {value}")


class PersistentWorkers(LoaderKnob, Switch):
    """A loader whose workers stay draws no seed at the begin of an epoch, so the numbers drawn after it, such
    as the order of the samples, would be others than before. Here one is drawn all the same."""

    name = "loader.persistent_workers"
    written = "DataLoader(…, persistent_workers={flag}); the order differs from the second epoch on"
    unless = "the data set draws random numbers or keeps something: its workers go on where they were"

    def change(self, loader: Any, value: bool, outcome: Outcome) -> None:
        if not loader.num_workers:
            return outcome.refused("the loader has no workers")
        if bool(loader.persistent_workers) == value:
            return outcome.already(f"the loader has {value}")
        vars(loader)["persistent_workers"] = vars(loader)[_DRAWS] = value
        return outcome.applied(f"{not value} → {value}")


class PrefetchFactor(LoaderKnob, Number):
    name = "loader.prefetch_factor"
    written = "DataLoader(…, prefetch_factor={value})"
    takes = "1, 2, …"
    least = 1

    def change(self, loader: Any, value: int, outcome: Outcome) -> None:
        if not loader.num_workers:
            return outcome.refused("the loader has no workers")
        if loader.prefetch_factor == value:
            return outcome.already(f"the loader has {value}")
        before, loader.prefetch_factor = loader.prefetch_factor, value
        return outcome.applied(f"{before} → {value}")


class PinMemory(LoaderKnob, Switch):
    name = "loader.pin_memory"
    written = "DataLoader(…, pin_memory={flag})"

    def apply(self, place: Place, value: bool, outcome: Outcome) -> None:
        if not no_accelerator(place, outcome):
            super().apply(place, value, outcome)

    def change(self, loader: Any, value: bool, outcome: Outcome) -> None:
        if bool(loader.pin_memory) == value:
            return outcome.already(f"the loader has {value}")
        loader.pin_memory = value
        return outcome.applied(f"{not value} → {value}")


class StartMethod(LoaderKnob):
    name = "loader.multiprocessing_context"
    written = 'DataLoader(…, multiprocessing_context="{value}")'
    takes = "fork, forkserver, spawn"
    unless = _RANDOM

    def read(self, text: str) -> str:
        if text not in ("fork", "forkserver", "spawn"):
            raise ValueError(f"{self.name} is fork, forkserver or spawn, not {text}")
        return text

    def change(self, loader: Any, value: str, outcome: Outcome) -> None:
        if not loader.num_workers:
            return outcome.refused("the loader has no workers")
        loader.multiprocessing_context = value
        return outcome.applied(f"workers are started by {value}")


class BatchSize(LoaderKnob, Number):
    name = "loader.batch_size"
    written = "DataLoader(…, batch_size={value}), and scale the learning rate with it"
    takes = "1, 2, …"
    effect = CHANGES_TRAINING
    least = 1

    def change(self, loader: Any, value: int, outcome: Outcome) -> None:
        batches = loader.batch_sampler
        if batches is None or type(batches).__name__ != "BatchSampler":
            kind = "none" if batches is None else f"its own {type(batches).__name__}"
            return outcome.refused(f"the loader has {kind} that makes the batches")
        if batches.batch_size == value:
            return outcome.already(f"the loader has {value}")
        before, batches.batch_size = batches.batch_size, value
        vars(loader)["batch_size"] = value
        return outcome.applied(f"{before} → {value}")


class NonBlocking(Switch):
    """Copies to the device that do not wait; only from pinned memory, where the order of a stream keeps
    them right."""

    name = "transfer.non_blocking"
    written = "batch.to(device, non_blocking=True)"
    only = True
    needs = "nothing in pinned memory was copied to a device"

    def apply(self, place: Place, value: bool, outcome: Outcome) -> None:
        if no_accelerator(place, outcome):
            return
        tensor = place.torch.Tensor

        def to(original: Any) -> Any:
            def call(one: Any, *args: Any, **kwargs: Any) -> Any:
                if _goes_to_device(one, args, kwargs):
                    kwargs["non_blocking"] = True
                    if outcome.state != APPLIED:
                        outcome.applied("copies from pinned memory do not wait")
                return original(one, *args, **kwargs)

            return call

        replace(tensor, "to", to)
        replace(tensor, "cuda", to)


def _goes_to_device(one: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """A call whose only argument is a device, or none (`.cuda()`)."""
    if one.device.type != "cpu" or len(args) > 1 or "non_blocking" in kwargs:
        return False
    target = str(args[0] if args else kwargs.get("device", "cuda"))
    return target.startswith("cuda") and bool(one.is_pinned())


def _is_iterable(loader: Any) -> bool:
    """An iterable data set, whose samples nobody can ask for one by one."""
    return bool(getattr(loader, "_dataset_kind", 0))
