"""No code at all: recognise the loop of an unchanged script from what torch itself does.

Hooked are the DataLoader's iterator, `torch.autograd.backward`, the public global optimizer hooks, and
two calls whose time has a name of its own (`torch.save`, `clip_grad_norm_`). A step
begins where a training batch is asked for; without a DataLoader it ends with the optimizer's step.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from threading import get_ident
from typing import Any, TypeVar

from . import ring
from .core import Loop
from .monitor import TrainingMonitor
from .phases import BACKWARD, BETWEEN, DATA, FORWARD, OPTIMIZER, OTHER, VALIDATE
from .recorder import Recorder

TRAIN, EVALUATE = 1, 2
_PRIMARY_PATIENCE = 64
_MAX_ERRORS = 8
_BY_HAND = 8
T = TypeVar("T")


class LoaderState:
    """What is known about one DataLoader: does its data get trained on?"""

    __slots__ = ("__weakref__", "batches", "role", "seen")

    def __init__(self) -> None:
        self.role = 0
        self.batches = 0
        self.seen = 0
        """Count of backward passes when its last batch was handed out."""


class Auto(Loop):
    """The events of a loop, and the step they make. The usual case of each event is in `Loop`; these are
    the rules, and every case but the usual one."""

    __slots__ = ("_loaders", "_strange", "current", "hooks", "monitor", "on", "recorder")

    def __init__(self, monitor: TrainingMonitor, grad_enabled: Callable[[], bool]) -> None:
        super().__init__(monitor.recorder, grad_enabled)
        self.monitor = monitor
        self.recorder: Recorder = monitor.recorder
        self.on = True
        self._loaders: weakref.WeakKeyDictionary[Any, LoaderState] = weakref.WeakKeyDictionary()
        self.current: LoaderState | None = None
        limit = os.environ.get("GPUMON_MAX_STEPS", "")
        self.recorder.limit = int(limit) if limit.isdigit() else 0
        self._strange = 0
        self.hooks = self.optimizer_begins, self.optimizer_ends
        """What torch is to call around an optimizer's step; always the same two objects."""
        self.recorder.on_error = self.failed

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

    def asked(self, state: LoaderState) -> bool:
        """A batch is asked for; whether it is one to train on."""
        recorder = self.recorder
        if not self.grad_enabled() or self._is_evaluation(state):
            if recorder.phase != VALIDATE and not recorder.depth:
                recorder.mark(VALIDATE)
            return False
        if self.work:
            self._complete()
        elif not self.backwards:
            recorder.restart()  # whatever was iterated before, it was not training
        return recorder.waiting()

    def _complete(self) -> None:
        """The open record has had its backward pass, and the next batch is asked for."""
        if not self.updated:
            self.recorder.flag(ring.F_NO_UPDATE)
        self.recorder.close()
        self.work = self.updated = False
        self.batches = 0

    def iterating(self, loader: Any) -> tuple[LoaderState, bool]:
        """A loader is iterated anew (its workers start): that is waiting for data, too."""
        self.trusted = 0
        state = self.state_of(loader)
        asked = self.asked(state)
        if asked and (state.role == TRAIN or not self.backwards):
            self.recorder.epoch()
        return state, asked

    def _is_evaluation(self, state: LoaderState) -> bool:
        """A loader that handed out a batch nobody went backward from, while another one is trained on."""
        if not state.role and state.batches and self.backwards and state.seen == self.backwards:
            state.role = EVALUATE
        return state.role == EVALUATE

    def received(self, state: LoaderState, iterator: Any, asked: bool, batch: Any) -> None:
        """What a loader gave, trained on or not."""
        state.batches += 1
        state.seen = self.backwards
        self.current = state
        self.fresh = state.role != TRAIN
        self.trusted = id(iterator) if asked and state.role == TRAIN else 0
        if not asked:
            return
        self.recorder.arrived_at(FORWARD, asked)
        if not self.batches:
            self.recorder.count_batch(batch)
        self.batches += 1

    def nothing(self, asked: bool) -> None:
        """The loader is at its end (or failed)."""
        if asked:
            self.recorder.exhausted(asked)
        elif not self.recorder.depth:
            self.recorder.mark(BETWEEN)

    # ── passes ───────────────────────────────────────────────────────────────────────────────────

    def unusual_backward(self, before: int) -> None:
        """A backward pass begins, and `before` was open."""
        if self._updates_by_hand():
            self.recorder.end_step()
            self.work = False
        if before in (BETWEEN, VALIDATE) or (before == OTHER and self.batches):
            # what we took for the end of a step was its next forward pass
            self.recorder.relabel(FORWARD)
        if self.current is not None and self.fresh:
            self.current.role = TRAIN
            self.fresh = False

    def _updates_by_hand(self) -> bool:
        """No loader, and after many backward passes no optimizer either: then a pass is a step."""
        return not self.batches and not self.primary and self.backwards >= _BY_HAND

    def optimizer_ended(self, optimizer: Any) -> None:
        primary = self._is_primary(id(optimizer))
        if primary and self.updated and self.batches:
            self.inner = True  # the same optimizer again on the same batch: its steps are the steps
        self.updated = True
        if not primary or (self.batches and not self.inner):
            self.recorder.mark(BETWEEN)
            return
        self.recorder.end_step()
        self.work = self.updated = False

    def _is_primary(self, optimizer: int) -> bool:
        """Several optimizers without a loader (a GAN): a step lasts from the first one to itself."""
        if not self.primary or self._strange > _PRIMARY_PATIENCE:
            self.primary = optimizer
        if optimizer == self.primary:
            self._strange = 0
            return True
        self._strange += 1
        return False

    def begin_training(self) -> None:
        """The first backward pass: this process trains, so now it gets its ring."""
        self.training = True
        if not self.on:
            return
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
        if self.recorder.errors >= _MAX_ERRORS:
            self.switch_off()

    def finish(self) -> None:
        """The process ends: a record with its optimizer step done is a step."""
        if self.work and self.updated:
            self._complete()

    def switch_off(self) -> None:
        self.on = False
        self.recorder.thread = 0

    def retire(self) -> None:
        """A monitor in the script's own code takes over."""
        self.on = False
        self.monitor.abandon()
