"""What a loop calls, in Python: `Marks`, `Phase` and `Batches` for a user's own marks, `Loop` for automatic
instrumentation. In C: marks.c, batches.c and loop.c."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import get_ident
from typing import TYPE_CHECKING, Any

from .. import ring
from ..compiler.tracing import Compiling
from .phases import BACKWARD, BETWEEN, DATA, FORWARD, OPTIMIZER, OTHER
from .plain import Core


class Marks:
    """The marks a user calls every step. Inside compiled code they are no-ops."""

    def __init__(self, recorder: Core) -> None:
        self._recorder: Any = recorder

    def lap(self, name: str) -> None:
        """From here on it is `name`, until the next lap or `step()`: the cheapest mark."""
        if not Compiling.check():
            self._recorder.lap(name)

    def step(
        self, loss: Any = None, *, samples: int | None = None, tokens: int | None = None, **scalars: Any
    ) -> None:
        """One optimizer step is done. `loss` and other numbers are read without a device sync."""
        if Compiling.check():
            return
        if loss is None and samples is None and tokens is None and not scalars:
            self._recorder.step()
        else:
            self._recorder.step(loss, samples=samples, tokens=tokens, **scalars)


class Phase:
    """A named phase as a context manager. One object per name, entered as often as wanted."""

    __slots__ = ("_core", "_phase")

    def __init__(self, core: Core, phase: int) -> None:
        self._core = core
        self._phase = phase

    def __enter__(self) -> None:
        self._core.push(self._phase)

    def __exit__(self, *failure: object) -> None:
        self._core.pop()


class Batches:
    """Iterates what `start()` gives: waiting for a batch is the phase `data` and begins a step."""

    __slots__ = ("_core", "_counting", "_source", "_start")

    def __init__(self, core: Core, start: Callable[[], Iterator[Any]], counting: bool) -> None:
        self._core = core
        self._start = start
        self._source: Iterator[Any] | None = None
        self._counting = counting

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        core = self._core
        asked = core.request_batch()
        try:
            if self._source is None:
                self._source = self._start()
            batch = next(self._source)
        except BaseException:
            if asked and core.on:
                core.mark(BETWEEN)
            raise
        if asked and core.on:
            core.batch_arrived(OTHER, batch, self._counting)
        return batch


class Loop:
    """The usual path of automatic instrumentation: a training batch, forward, backward, one optimizer step.
    `StepRecognizer` knows every other case and is called for it (the methods below `TYPE_CHECKING`)."""

    __slots__ = (
        "arrival",
        "backwards",
        "batches",
        "closer",
        "core",
        "grad_enabled",
        "had_backward",
        "had_update",
        "inside",
        "last",
        "learning",
        "passes",
        "settled",
        "stepped",
        "steps_within_batch",
        "tail",
        "training",
        "training_iterator",
        "untrained",
        "usual_update",
    )  # fmt: skip

    def __init__(self, core: Core, grad_enabled: Callable[[], bool]) -> None:
        self.core = core
        self.grad_enabled = grad_enabled
        self.arrival = OTHER
        """The phase that follows the arrival of a batch: copying it, or whatever comes before the model."""
        self.training = False
        """Whether there has been a backward pass at all."""
        self.stepped = False
        """Whether an optimizer has stepped. While none has, updates may be written by hand."""
        self.had_backward = self.had_update = False
        """Whether the open record has had a backward pass, and an optimizer step."""
        self.usual_update = False
        """Whether that step was seen here alone: `StepRecognizer` has not heard of it."""
        self.settled = False
        """Whether it is known which optimizers make a step, and no other one has stepped in the open
        record."""
        self.untrained = False
        """Whether there was no backward pass yet from what the current loader gave."""
        self.steps_within_batch = False
        """One batch is stepped on several times: a forward pass can begin a step."""
        self.learning = False
        """Nothing is usual: `StepRecognizer` looks for the outermost modules."""
        self.tail = False
        """An evaluation has had a call, and maybe no other one follows."""
        self.batches = self.passes = self.backwards = 0
        """In the open record: training batches, and backward passes outside an optimizer's step. All
        passes."""
        self.closer = self.last = self.inside = 0
        """`id` of the last optimizer of a step, of the one that has stepped last, and of the one whose
        step is going on."""
        self.training_iterator = 0
        """`id` of the iterator known to give training batches."""

    if TYPE_CHECKING:

        def begin_training(self) -> None: ...
        def unusual_call(self, module: Any) -> bool: ...
        def unsure_start(self) -> None: ...
        def begin_at_open_phase(self) -> None: ...
        def unusual_backward(self, before: int) -> None: ...
        def after_backward(self) -> None: ...
        def optimizer_ended(self, optimizer: Any) -> None: ...

    def _ask(self, what: Callable[[], None]) -> None:
        self.core.guarded(lambda _: what(), None)

    def count_micro_batches(self) -> None:
        """The step's work is done: how many micro-batches it had, and nothing is in the next one yet."""
        micro = min(self.batches or self.passes, self.passes, ring.MOST_MICRO_BATCHES)
        if micro > 1:
            self.core.scratch[ring.W_FLAGS] |= micro << ring.MICRO_BATCHES_SHIFT
        self.had_backward = self.had_update = self.usual_update = False
        self.batches = self.passes = 0

    def _end_tail(self) -> None:
        """What followed the last call of an evaluation was not part of it."""
        if self.tail:
            self.tail = False
            self.core.current = BETWEEN

    # ── batches ──────────────────────────────────────────────────────────────────────────────────────

    def usual_request(self, iterator: Any) -> bool:
        """A batch is asked for, and the step (or a micro-batch) before is done; False: this is not the
        usual case."""
        core = self.core
        if (
            not self.settled
            or self.learning
            or not (self.had_update or self.passes)
            or id(iterator) != self.training_iterator
            or get_ident() != core.thread
            or core.depth
        ):
            return False
        if not self.grad_enabled():
            return False
        self._end_tail()
        self.inside = 0
        if self.had_update:
            self.count_micro_batches()
            core.complete_and_begin(DATA)
        else:
            core.mark(DATA)
        return True

    def usual_batch(self, batch: Any) -> None:
        """It came."""
        self.batches += 1
        self.core.batch_arrived(self.arrival, batch, True)

    # ── the model ────────────────────────────────────────────────────────────────────────────────────

    def _begins_step(self) -> bool:
        """Whether the forward pass that begins is known to begin a step: the last optimizer of a step has
        stepped, and no batch ends the steps."""
        return self.settled and self.last == self.closer and (not self.batches or self.steps_within_batch)

    def forward_begins(self) -> None:
        """A forward pass begins, with gradients."""
        core = self.core
        self._end_tail()
        if not self.inside:
            if self.had_update and self._begins_step():
                self.count_micro_batches()
                core.complete_and_begin(FORWARD)
                return
            if self.had_update or (not self.stepped and self.had_backward):
                self._ask(self.unsure_start)
        elif self.had_update:  # a closure
            self._ask(self.begin_at_open_phase)
        core.mark(FORWARD)

    def call_begins(self, module: Any) -> bool:
        """An outermost module is called. Whether its end matters (`StepRecognizer.call_ended`)."""
        core = self.core
        if get_ident() != core.thread or core.depth or core.current == BACKWARD:
            return False
        if not self.learning and self.grad_enabled():
            if core.current == FORWARD:
                return False
            if getattr(module, "training", None) is True:
                self.forward_begins()
                return False
        try:
            return self.unusual_call(module)
        except Exception as error:  # noqa: BLE001 — the guard of the loop; counted and shown
            core.failed(error)
            return False

    def backward_begins(self) -> int:
        """A backward pass begins; gives the phase it was in, -1 in a thread that is not ours or inside
        another one."""
        core = self.core
        if not self.training:
            self._ask(self.begin_training)
        if get_ident() != core.thread or core.current == BACKWARD:
            return -1
        before = core.current
        if before != FORWARD or self.untrained or not self.stepped or self.learning:
            core.guarded(self.unusual_backward, before)
        self.backwards += 1
        self.had_backward = True
        self.passes += not self.inside
        core.mark(BACKWARD)
        return before

    def backward_ends(self, before: int) -> None:
        """It is over."""
        if before >= 0:
            self.core.mark(OPTIMIZER if self.inside else OTHER)
            if not self.stepped:
                self._ask(self.after_backward)

    # ── optimizers ───────────────────────────────────────────────────────────────────────────────────

    def optimizer_begins(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """An optimizer's step begins; one inside another one's is part of it."""
        if get_ident() == self.core.thread and self.inside in (0, id(optimizer)):
            self.inside = id(optimizer)
            self.core.mark(OPTIMIZER)

    def optimizer_ends(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        core = self.core
        if get_ident() != core.thread or self.inside != id(optimizer):
            return
        self.inside = 0
        if self.settled and id(optimizer) == self.closer and not self.had_update and not self.learning:
            self.had_update = self.usual_update = True
            self.last = self.closer
            core.mark(BETWEEN)
        else:
            core.guarded(self.optimizer_ended, optimizer)
