"""What is known of each DataLoader: is its data used for training, and are its batches the steps' batches?"""

from __future__ import annotations

import weakref
from typing import Any

TRAIN, EVALUATE = 1, 2


class LoaderState:
    """What is known about one DataLoader: is its data used for training?"""

    __slots__ = ("__weakref__", "batches", "role", "seen")

    def __init__(self) -> None:
        self.role = 0
        self.batches = 0
        self.seen = 0
        """Number of backward passes when it handed out its last batch."""


class KnownLoaders:
    """The loaders met so far."""

    def __init__(self) -> None:
        self._states: weakref.WeakKeyDictionary[Any, LoaderState] = weakref.WeakKeyDictionary()
        self._current: LoaderState | None = None
        """The one that handed out the last batch."""
        self._counted: LoaderState | None = None
        """The one whose batches the open record counts."""

    def state_of(self, loader: Any) -> LoaderState:
        """The state of a loader, the same in every epoch."""
        try:
            state = self._states.get(loader)
            if state is None:
                state = self._states[loader] = LoaderState()
        except TypeError:  # a loader that cannot be hashed or weakly referenced
            state = LoaderState()
        return state

    def is_evaluation(self, state: LoaderState, backwards: int) -> bool:
        """Whether this loader's last batch had no backward pass while another loader trains."""
        if not state.role and state.batches and backwards and state.seen == backwards:
            state.role = EVALUATE
        return state.role == EVALUATE

    def received(self, state: LoaderState, backwards: int) -> None:
        """It handed out a batch, after so many backward passes."""
        state.batches += 1
        state.seen = backwards
        self._current = state

    def counts(self, state: LoaderState, *, first: bool) -> bool:
        """Whether its batch is one of the open record: only one of several loaders iterated together counts,
        that of the record's first batch."""
        if first:
            self._counted = state
        return state is self._counted

    def trained_on(self) -> None:
        """The last batch was one to train on."""
        if self._current is not None:
            self._current.role = TRAIN
