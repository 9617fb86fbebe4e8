"""What a loop calls, in Python: `Marks`, `Phase` and `Batches` for the user's own marks, `Loop` for automatic
instrumentation. The C versions are marks.c, batches.c and loop.c."""

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
        """Phase `name` begins and lasts until the next lap or `step()`: the cheapest mark."""
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
    """A named phase as a context manager. One object per name, which may be entered repeatedly."""

    __slots__ = ("_core", "_phase")

    def __init__(self, core: Core, phase: int) -> None:
        self._core = core
        self._phase = phase

    def __enter__(self) -> None:
        self._core.push(self._phase)

    def __exit__(self, *failure: object) -> None:
        self._core.pop()


class Batches:
    """Iterates over what `start()` returns. Waiting for a batch is phase `data` and begins a step."""

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
    `StepRecognizer` handles every other case (the methods below `TYPE_CHECKING`)."""

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
        """The phase after a batch arrives: its copy to the device, or whatever else precedes the model."""
        self.training = False
        """Whether there has been any backward pass."""
        self.stepped = False
        """Whether an optimizer has stepped. While none has, updates may be written by hand."""
        self.had_backward = self.had_update = False
        """Whether the open record has had a backward pass, and an optimizer step."""
        self.usual_update = False
        """Whether only this class saw that step: `StepRecognizer` does not know of it."""
        self.settled = False
        """Whether it is known which optimizers make up a step, and no other has stepped in the open
        record."""
        self.untrained = False
        """Whether there has been no backward pass yet on the current loader's batches."""
        self.steps_within_batch = False
        """Several steps use the same batch: a forward pass can begin a step."""
        self.learning = False
        """No call takes the usual path: `StepRecognizer` is looking for the outermost modules."""
        self.tail = False
        """An evaluation has made a call, which may be its last."""
        self.batches = self.passes = self.backwards = 0
        """In the open record: training batches, and backward passes outside an optimizer's step. Then all
        backward passes so far."""
        self.closer = self.last = self.inside = 0
        """`id` of a step's last optimizer, of the one that stepped most recently, and of the one stepping
        now."""
        self.training_iterator = 0
        """`id` of the iterator known to yield training batches."""

    if TYPE_CHECKING:

        def begin_training(self) -> None: ...
        def unusual_call(self, module: Any) -> bool: ...
        def unsure_start(self) -> None: ...
        def begin_at_open_phase(self) -> None: ...
        def tail_ended(self) -> None: ...
        def unusual_backward(self, before: int) -> None: ...
        def after_backward(self) -> None: ...
        def optimizer_ended(self, optimizer: Any) -> None: ...

    def _ask(self, what: Callable[[], None]) -> None:
        self.core.guarded(lambda _: what(), None)

    def count_micro_batches(self) -> None:
        """The step's work is done: note how many micro-batches it had, and reset for the next step."""
        micro = min(self.batches or self.passes, self.passes, ring.MOST_MICRO_BATCHES)
        if micro > 1:
            self.core.scratch[ring.W_FLAGS] |= micro << ring.MICRO_BATCHES_SHIFT
        self.had_backward = self.had_update = self.usual_update = False
        self.batches = self.passes = 0

    def _end_tail(self) -> None:
        """What followed the evaluation's last call was not part of the evaluation."""
        if self.tail:
            self._ask(self.tail_ended)

    # ── batches ──────────────────────────────────────────────────────────────────────────────────────

    def usual_request(self, iterator: Any) -> bool:
        """A batch is requested, and the previous step (or micro-batch) is done. False: not the usual
        case."""
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
        """The requested batch has arrived."""
        self.batches += 1
        self.core.batch_arrived(self.arrival, batch, True)

    # ── the model ────────────────────────────────────────────────────────────────────────────────────

    def _begins_step(self) -> bool:
        """Whether this forward pass certainly begins a step: the step's last optimizer has stepped, and
        steps do not end with a batch."""
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
        """An outermost module is called. Returns whether its end matters (`StepRecognizer.call_ended`)."""
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
        except Exception as error:  # noqa: BLE001 — guards the loop; counted and shown
            core.failed(error)
            return False

    def backward_begins(self) -> int:
        """A backward pass begins. Returns the phase it interrupts; -1 in another thread or inside another
        backward pass."""
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
        """The backward pass is over."""
        if before >= 0:
            self.core.mark(OPTIMIZER if self.inside else OTHER)
            if not self.stepped:
                self._ask(self.after_backward)

    # ── optimizers ───────────────────────────────────────────────────────────────────────────────────

    def optimizer_begins(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """An optimizer's step begins; one nested in another optimizer's step is part of that one."""
        if get_ident() == self.core.thread and self.inside in (0, id(optimizer)):
            self.inside = id(optimizer)
            self.core.mark(OPTIMIZER)

    def optimizer_ends(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        core = self.core
        if get_ident() != core.thread or self.inside != id(optimizer):
            return
        self.inside = 0
        usual = self.settled and id(optimizer) == self.closer and not self.had_update
        if usual and not self.learning and not self.untrained:
            self.had_update = self.usual_update = True
            self.last = self.closer
            core.mark(BETWEEN)
        else:
            core.guarded(self.optimizer_ended, optimizer)
