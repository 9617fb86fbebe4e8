"""Recognize the steps of an unchanged script from what torch itself does.

A step is one update of the training. It ends with the last optimizer that steps in it; the next begins where
work for the next update begins: a training batch is requested, or the model is called with gradients.

Which optimizers make up a step is learned, and so is whether updates are written by hand. Until that is
known, the record stays open and the points where a step may have begun are remembered (`Cut`); it is split
there later.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import get_ident
from typing import Any, TypeVar

from .. import ring
from ..core import Loop
from ..core.phases import BACKWARD, BETWEEN, DATA, FORWARD, OPTIMIZER, OTHER, TRANSFER, VALIDATE
from ..loop.session import Session
from ._loader_roles import TRAIN, KnownLoaders, LoaderState
from ._manual_updates import HandUpdates
from ._modules import OutermostModules
from ._no_grad_passes import PassesWithoutGradients
from ._optimizers import KnownOptimizers, has_gradients
from ._setup import SetUp
from ._starts import Start, split

_NO_OWN_WORK = (OTHER, BETWEEN, TRANSFER, VALIDATE)
"""Phases in which a forward pass may have begun without being seen."""
T = TypeVar("T")


class StepRecognizer(Loop):
    """Turns the events of a loop into steps. `Loop` handles the usual case of each event; the rules and all
    other cases are here."""

    __slots__ = (
        "_may_start",
        "_pending",
        "_setup",
        "_start",
        "by_hand",
        "evaluation",
        "hooks",
        "loaders",
        "modules",
        "monitor",
        "on",
        "optimizers",
        "recorder",
        "session",
    )  # fmt: skip

    def __init__(self, session: Session, torch: Any, setup: SetUp | None = None) -> None:
        super().__init__(session.recorder, torch.is_grad_enabled)
        self.session = session
        self.monitor: Any = None
        """The user's monitor, which `TrainingMonitor.auto()` returns when called again."""
        self.recorder = session.recorder
        self.on = True
        self.loaders = KnownLoaders()
        self.optimizers = KnownOptimizers(self._forget_optimizer)
        self._start: Start | None = None
        self._may_start = False
        """There was an update, or a backward pass after which a manual one may have come, and no start
        since."""
        self._pending: list[Start] = []
        """Starts of steps with manual updates; an optimizer may still turn up and invalidate them."""
        self._setup = setup
        self.by_hand = HandUpdates()
        self.modules = OutermostModules(self, torch)
        self.evaluation = PassesWithoutGradients(self)
        self.hooks = self.optimizer_begins, self.optimizer_ends
        """What torch calls around an optimizer's step; always the same two objects."""
        session.give_up = self.switch_off
        session.each_second = self.modules.look_again

    # ── loaders ──────────────────────────────────────────────────────────────────────────────────

    def ours(self) -> bool:
        return self.on and self.recorder.on and get_ident() == self.recorder.thread

    def batch_requested(self, state: LoaderState) -> bool:
        """A batch is requested. Returns whether it is one to train on."""
        recorder = self.recorder
        self.inside = 0  # an optimizer's step that raised never reported its end
        self.modules.pause()
        if not self.grad_enabled() or self.loaders.is_evaluation(state, self.backwards):
            if recorder.current != VALIDATE and not recorder.depth:
                recorder.mark(VALIDATE)
            return False
        if self.tail:
            self.tail_ended()
        if not self.backwards:
            if self._setup is not None:
                self._setup.asked()
            recorder.restart()  # what was iterated so far was not training
        elif self._is_done():
            self._complete()
        asked = recorder.request_batch()
        if asked and self._wants_start():
            self._remember_start(by_batch=True)
        return asked

    def tail_ended(self) -> None:
        """What followed the evaluation's last call was not part of the evaluation."""
        self.tail = False
        self.recorder.relabel(BETWEEN)

    def iterating(self, loader: Any) -> tuple[LoaderState, bool]:
        """A new iteration of a loader begins (its workers start): that, too, is waiting for data."""
        self.training_iterator = 0
        state = self.loaders.state_of(loader)
        asked = self.batch_requested(state)
        if asked and (state.role == TRAIN or not self.backwards):
            self.recorder.epoch()
        return state, asked

    def received(self, state: LoaderState, iterator: Any, asked: bool, batch: Any) -> None:
        """A loader returned a batch, for training or not."""
        self.loaders.received(state, self.backwards)
        self.untrained = state.role != TRAIN
        self.training_iterator = id(iterator) if asked and state.role == TRAIN else 0
        if self._setup is not None:
            self._setup.arrived()
        if not asked:
            return
        self.recorder.end_wait(self.arrival, asked)
        if self.loaders.counts(state, first=self.passes >= self.batches):
            self.recorder.count_batch(batch)
            self.batches += 1
        self.modules.batch_arrived(batch)

    def no_batch(self, asked: bool) -> None:
        """The loader is at its end (or failed)."""
        if asked:
            if self._is_done():
                self._complete()
            elif self._start is not None and self._start.cut.at == self.recorder.phase_began:
                self._start, self._may_start = None, True  # no step began here
            self.recorder.exhausted(asked)
        elif not self.recorder.depth:
            self.recorder.mark(BETWEEN)

    # ── steps ────────────────────────────────────────────────────────────────────────────────────

    def _is_done(self) -> bool:
        """Whether the open record's work is known to be complete when the next batch is requested."""
        if self.stepped:
            return self.had_update and self.settled
        return self.by_hand.established and self.had_backward and self.by_hand.seen()

    def _complete(self) -> None:
        """The open record's work is complete."""
        if not self.stepped:
            self.modules.install()
        self.count_micro_batches()
        self.recorder.close()
        self._forget_starts()

    def _forget_starts(self) -> None:
        self._start, self._may_start, self._pending = None, False, []

    def _hear_of_usual_update(self) -> None:
        """Catch up on an update that the usual path saw and did not report."""
        if self.usual_update:
            self.usual_update = False
            self.optimizers.begin_step(self.closer)
            self._start, self._may_start = None, True

    def _remember_start(self, *, by_batch: bool) -> None:
        """A step may have begun where the open phase began."""
        self._may_start = False
        cut = self.recorder.cut_here()
        self._start = Start(cut, self.batches, self.passes, self.last, by_batch)

    def _wants_start(self) -> bool:
        """Whether this is the first sign of work after an update or a possible one."""
        self._hear_of_usual_update()
        return self._may_start and (self.had_update or not self.stepped)

    def unsure_start(self) -> None:
        """The model is called after an update or a possible one."""
        if not self.stepped and self.by_hand.established and self.by_hand.seen():
            self._complete()
        elif self._wants_start():
            self.recorder.mark(FORWARD)
            self._remember_start(by_batch=False)

    def begin_at_open_phase(self) -> None:
        """Work for the next update began with the open phase: an unseen forward pass, or an optimizer's
        step with a closure."""
        recorder = self.recorder
        if self.settled and self.last == self.closer and (not self.batches or self.steps_within_batch):
            phase, at = recorder.current, recorder.phase_began
            self._complete()
            recorder.roll(at)
            recorder.relabel(phase)
        elif self._wants_start():
            self._remember_start(by_batch=False)

    def _cut(self, starts: list[Start]) -> None:
        """Steps did begin at these points: commit what precedes each."""
        batches, passes = split(self.recorder, starts)
        self.batches, self.passes = self.batches - batches, max(0, self.passes - passes)
        self._forget_starts()

    # ── passes ───────────────────────────────────────────────────────────────────────────────────

    def unusual_call(self, module: Any) -> bool:
        """An outermost module is called, but not simply for the next forward pass."""
        wanted = self.modules.called(module)
        if self.grad_enabled() and module.training:
            if self.recorder.current != FORWARD:
                self.forward_begins()
            return wanted
        return self.evaluation.begins(module) or wanted

    def call_ended(self) -> None:
        """An outermost module has returned whose end `unusual_call` asked to be told of."""
        if self.ours():
            self.guarded(self.evaluation.ends)
            self.guarded(self.modules.look)

    def unusual_backward(self, before: int) -> None:
        """A backward pass begins while phase `before` is open."""
        self.modules.pause()
        if not self.stepped and not self.inside:
            self._check_by_hand()
        elif self.had_update and (before in _NO_OWN_WORK or before == OPTIMIZER):
            self.begin_at_open_phase()
        self.tail = False
        if before in _NO_OWN_WORK or before == self.evaluation.rollout:
            # the call of the model went unseen: the open phase was the forward pass
            self.recorder.relabel(FORWARD)
            self.modules.missed()
        elif before == OPTIMIZER and self.inside:
            self.recorder.relabel(FORWARD)  # a closure whose model call also went unseen
        self._trained_on()

    def _trained_on(self) -> None:
        """The last batch was one to train on."""
        if self.untrained:
            self.loaders.trained_on()
            self.untrained = False
            self.session.loaders.trained_on()

    def _check_by_hand(self) -> None:
        """No optimizer has ever stepped: were the parameters updated by hand since the last backward?"""
        if not self.had_backward:
            return
        if not self.by_hand.seen():
            self._start = None  # gradients are accumulated
            return
        if self._start is None:
            self._remember_start(by_batch=False)
        self.by_hand.updates += 1
        self.modules.install()
        self._pending.append(self._start)  # type: ignore[arg-type]
        self._start = None
        if self.by_hand.established:
            self._cut(self._pending)

    def after_backward(self) -> None:
        """A backward pass is over, and no optimizer has stepped yet."""
        if not self.inside:
            self.by_hand.remember()
            self._may_start = True
            self.modules.look()

    def optimizer_ended(self, optimizer: Any) -> None:
        """An optimizer has stepped, and this is not the usual case of a training's only one."""
        if not self.had_backward and has_gradients(optimizer):
            self._unseen_backward()
        self._first_optimizer()
        self._hear_of_usual_update()
        optimizers = self.optimizers
        if not self.had_update:
            optimizers.begin_step()
        if optimizers.in_step(optimizer):
            self._stepped_again(optimizer)
        elif not optimizers.is_known(optimizer):
            self.settled = False
        optimizers.stepped(optimizer)
        if not self.batches and not optimizers.is_alone_in_step():
            self.passes = 1  # each has its own passes: what of them is accumulation is not known
        self.last = id(optimizer)
        self.had_update = self._may_start = True
        self.recorder.mark(BETWEEN)
        self.modules.install()
        self.modules.look()

    def _unseen_backward(self) -> None:
        """The optimizer has gradients that did not come from `backward()`: from `torch.autograd.grad`, or a
        transformation of `torch.func`."""
        if not self.training:
            self.begin_training()
        self.backwards += 1
        self._trained_on()

    def _first_optimizer(self) -> None:
        if not self.stepped:
            self.stepped = True
            self._forget_starts()
            self.session.note_framework(sys._getframe(2))

    def _stepped_again(self, optimizer: Any) -> None:
        """The same optimizer steps a second time: a new training step began in between."""
        if self.recorder.steps and self.optimizers.is_other_training(self.recorder.steps):
            self._next_training(optimizer)
        start = self._start
        if start is not None:
            self.closer = start.optimizer
            self.steps_within_batch = bool(start.batches) and not start.by_batch
            self._cut([start])
        self.optimizers.confirm()
        self.optimizers.begin_step()
        self.settled = start is not None

    def _next_training(self, optimizer: Any) -> None:
        """Other optimizers now train another model: that is a separate run, unless it is one more of many."""
        self.modules.remove()
        joined = self.optimizers.is_round(self.recorder.steps)
        self.optimizers.forget_all()
        if not joined:
            self.session.next_run(optimizer, sys._getframe(2))
        self.modules.learn()

    def skipped(self, optimizer: Any) -> None:
        """A gradient scaler skipped this optimizer's step."""
        if self.inside == id(optimizer):
            self.inside = 0
            self.optimizer_ended(optimizer)
            if self.optimizers.is_alone_in_step():
                self.recorder.flag(ring.F_NO_UPDATE)

    def _forget_optimizer(self, gone: int) -> None:
        """An optimizer was freed: another may get its `id`."""
        if gone == self.last:
            self.last = 0
        if gone == self.closer:
            self.closer = 0
        if gone == self.inside:
            self.inside = 0

    # ── start and end ────────────────────────────────────────────────────────────────────────────

    def begin_training(self) -> None:
        """The first backward pass: this process trains, so now it gets its ring."""
        self.training = True
        if not self.on:
            return
        recorder = self.recorder
        if not recorder.steps:
            recorder.thread = get_ident()
        for phase in (DATA, TRANSFER, FORWARD, BACKWARD, OPTIMIZER, BETWEEN, VALIDATE):
            recorder.totals.use(phase)
        if self._setup is not None:
            self.session.probe.note("setup", self._setup.finish(bool(self.batches)))
            self.optimizers.made_first = self._setup.optimizers
            self._setup = None
        self.session.open_ring()

    def guarded(self, what: Callable[..., T], *args: Any, **kwargs: Any) -> T | None:
        """We must never stop a training: a failure is counted, reported once, and switches us off."""
        try:
            return what(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 — the hooks' outermost guard
            self.session.failed(error)
            return None

    def finish(self) -> None:
        """The process ends: a record that had its update is a step."""
        if self.tail:
            self.tail_ended()
        if self.stepped and self.had_update:
            self._hear_of_usual_update()
            if self._start is None or self._may_start:
                self._complete()
            else:  # work for another update had begun, but the update never came
                self._cut([self._start])
        elif not self.stepped and self.had_backward and (self.by_hand.updates or self.by_hand.seen()):
            self._cut(self._pending)
            self._complete()

    def switch_off(self) -> None:
        self.on = False
        self.recorder.thread = 0
        self.modules.remove()

    def retire(self) -> None:
        """A monitor in the script's own code takes over."""
        self.on = False
        self.modules.remove()
        self.session.abandon()
