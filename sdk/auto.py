"""No code at all: recognise the loop of an unchanged script from what torch itself does.

Hooked are the DataLoader's iterator, `torch.autograd.backward`, the public global optimizer hooks, and
a few calls whose time has a name of its own (`torch.save`, `clip_grad_norm_`, `zero_grad`). A step
begins where a training batch is asked for; without a DataLoader it ends with the optimizer's step.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from threading import get_ident
from typing import Any, TypeVar

from . import ring
from .monitor import TrainingMonitor
from .phases import BACKWARD, BETWEEN, DATA, FORWARD, OPTIMIZER, OTHER, VALIDATE
from .recorder import Recorder

TRAIN, EVALUATE = 1, 2
_PRIMARY_PATIENCE = 64
_MAX_ERRORS = 8
T = TypeVar("T")


class LoaderState:
    """What is known about one DataLoader: does its data get trained on?"""

    __slots__ = ("__weakref__", "batches", "role", "seen")

    def __init__(self) -> None:
        self.role = 0
        self.batches = 0
        self.seen = 0
        """Count of backward passes when its last batch was handed out."""


class Auto:
    """The events of a loop, and the step they make."""

    def __init__(self, monitor: TrainingMonitor, grad_enabled: Callable[[], bool]) -> None:
        self.monitor = monitor
        self.recorder: Recorder = monitor.recorder
        self.on = True
        self._grad_enabled = grad_enabled
        self._loaders: weakref.WeakKeyDictionary[Any, LoaderState] = weakref.WeakKeyDictionary()
        self._current: LoaderState | None = None
        self._backwards = 0
        self._batches = 0
        """Training batches in the open record; 0 at the optimizer's step means: no loader here."""
        limit = os.environ.get("GPUMON_MAX_STEPS", "")
        self._limit = int(limit) if limit.isdigit() else 0
        self._work = self._updated = False
        self._primary: int = 0
        self._strange = 0
        self._early = 0
        self._inner = False
        self._size = monitor.size

    # ── loaders ──────────────────────────────────────────────────────────────────────────────────

    def state_of(self, loader: Any) -> LoaderState:
        """The state of a loader; the same one in every epoch."""
        try:
            state = self._loaders.get(loader)
            if state is None:
                state = self._loaders[loader] = LoaderState()
        except TypeError:  # a loader that cannot be hashed or weakly held
            state = LoaderState()
        return state

    def ours(self) -> bool:
        return self.on and self.recorder.on and get_ident() == self.recorder.thread

    def asked(self, state: LoaderState) -> int:
        """A batch is asked for. Gives the begin of the wait, 0 when it is not a training wait."""
        if not self._grad_enabled() or self._is_evaluation(state):
            if self.recorder.cur != VALIDATE and not self.recorder.stack:
                self.recorder.mark(VALIDATE)
            return 0
        if self._work:
            self._close()
            self._enough()
        elif not self._backwards:
            self.recorder.restart()  # whatever was iterated before, it was not training
        if self._early and self.recorder.cur == DATA:
            early, self._early = self._early, 0
            return early
        return self.recorder.waiting()

    def iterating(self, loader: Any) -> tuple[LoaderState, int]:
        """A loader is iterated anew (its workers start): that is waiting for data, too."""
        state = self.state_of(loader)
        asked = self.asked(state)
        if asked and (state.role == TRAIN or not self._backwards):
            self.recorder.epoch()
        return state, asked

    def iterator_made(self, asked: int) -> None:
        """The wait that began with the iterator goes on until its first batch is here."""
        self._early = asked

    def _is_evaluation(self, state: LoaderState) -> bool:
        """A loader that handed out a batch nobody went backward from, while another one is trained on."""
        if not state.role and state.batches and self._backwards and state.seen == self._backwards:
            state.role = EVALUATE
        return state.role == EVALUATE

    def _close(self) -> None:
        """The open record has had its backward pass, and the next batch is asked for: it is complete."""
        if not self._updated:
            self.recorder.flag(ring.F_NO_UPDATE)
        self.recorder.close()
        self._work = self._updated = False
        self._batches = 0

    def got(self, state: LoaderState, asked: int, batch: Any) -> None:
        state.batches += 1
        state.seen = self._backwards
        self._current = state
        if not asked:
            return
        self.recorder.arrived(asked, FORWARD)
        if not self._batches:
            self.recorder.count(*self._size.of(batch))
        self._batches += 1

    def nothing(self, asked: int) -> None:
        """The loader is at its end (or failed)."""
        if asked:
            self.recorder.exhausted(asked)
        elif not self.recorder.stack:
            self.recorder.mark(BETWEEN)

    # ── passes ───────────────────────────────────────────────────────────────────────────────────

    def backward_begins(self) -> int:
        """Gives the phase to go back to afterwards."""
        recorder = self.recorder
        before = recorder.cur
        if before != OPTIMIZER:
            if before in (BETWEEN, VALIDATE) or (before == OTHER and self._batches):
                recorder.cur = FORWARD  # what we took for the end of a step was its next forward pass
            before = OTHER
        recorder.mark(BACKWARD)
        self._backwards += 1
        self._work = True
        if self._current is not None and self._current.role != TRAIN:
            self._current.role = TRAIN
        return before

    def optimizer_ends(self, optimizer: Any) -> None:
        self.recorder.submitted()
        primary = self._is_primary(id(optimizer))
        if primary and self._updated and self._batches:
            self._inner = True  # the same optimizer again on the same batch: its steps are the steps
        self._updated = True
        if not primary or (self._batches and not self._inner):
            self.recorder.mark(BETWEEN)
            return
        self.recorder.end_step()
        self._work = self._updated = False
        self._enough()

    def _enough(self) -> None:
        """`gpumon analyze` asked for so many steps: end the script here, as `sys.exit()` would."""
        if self._limit and self.recorder.steps >= self._limit:
            self._limit = 0
            raise SystemExit(0)

    def _is_primary(self, optimizer: int) -> bool:
        """Several optimizers without a loader (a GAN): a step lasts from the first one to itself."""
        if not self._primary or self._strange > _PRIMARY_PATIENCE:
            self._primary = optimizer
        if optimizer == self._primary:
            self._strange = 0
            return True
        self._strange += 1
        return False

    def begin_training(self) -> None:
        """The first backward pass: this process trains, so now it gets its ring."""
        recorder = self.recorder
        if not recorder.steps:
            recorder.thread = get_ident()
        for phase in (DATA, FORWARD, BACKWARD, OPTIMIZER, BETWEEN, VALIDATE):
            recorder.totals.use(phase)
        self.monitor.open_late()

    def guarded(self, what: Callable[..., T], *args: Any) -> T | None:
        """Nothing of ours may stop a training: what fails is counted, said once, and switches us off."""
        try:
            return what(*args)
        except Exception as error:  # noqa: BLE001 — the outermost guard of the hooks
            self.failed(error)
            return None

    def failed(self, error: Exception) -> None:
        self.monitor.failed(error)
        self.on = self.recorder.errors < _MAX_ERRORS

    def finish(self) -> None:
        """The process ends: a record with its optimizer step done is a step."""
        if self._work and self._updated:
            self._close()

    def switch_off(self) -> None:
        self.on = False

    def retire(self) -> None:
        """A monitor in the script's own code takes over."""
        self.on = False
        self.monitor.abandon()
