"""What stands between a loop and its core, in Python: `Face`, `Phase` and `Batches` for a user's own marks,
`Loop` for the auto way. In C: faces.h and loop.h."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ..compiling import Compiling
from ..phases import BACKWARD, BETWEEN, FORWARD, OPTIMIZER, OTHER
from .plain import Core


class Face:
    """The marks a user calls every step. Inside compiled code they are nothing."""

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
        asked = core.waiting()
        try:
            if self._source is None:
                self._source = self._start()
            batch = next(self._source)
        except BaseException:
            if asked and core.on:
                core.mark(BETWEEN)
            raise
        if asked and core.on:
            core.arrived(OTHER, batch, self._counting)
        return batch


class Loop:
    """The usual path of the auto way: a training batch, forward, backward, one optimizer step. `Auto` knows
    every other case and is called for it: `begin_training`, `unusual_backward`, `optimizer_ended`."""

    __slots__ = (
        "backwards", "batches", "core", "fresh", "grad_enabled", "inner", "primary", "training",
        "trusted", "updated", "work",
    )  # fmt: skip

    def __init__(self, core: Core, grad_enabled: Callable[[], bool]) -> None:
        self.core = core
        self.grad_enabled = grad_enabled
        self.training = False
        """Whether there has been a backward pass at all."""
        self.work = self.updated = False
        """Whether the open record has had a backward pass, and an optimizer step."""
        self.fresh = False
        """Whether nothing has been trained on what the current loader handed out yet."""
        self.inner = False
        """One batch is stepped on several times: the optimizer's steps are the steps."""
        self.batches = self.backwards = 0
        """Training batches in the open record (0 at the optimizer's step: no loader); backward passes."""
        self.primary = self.trusted = 0
        """`id` of the optimizer that ends a step, and of the iterator known to give training batches."""

    if TYPE_CHECKING:

        def begin_training(self) -> None: ...
        def unusual_backward(self, before: int) -> None: ...
        def optimizer_ended(self, optimizer: Any) -> None: ...

    def asks(self, iterator: Any) -> bool:
        """A batch is asked for, and the step before is done; False: this is not the usual case."""
        core = self.core
        if not self.updated or id(iterator) != self.trusted or get_ident() != core.thread or core.depth:
            return False
        if not self.grad_enabled():
            return False
        self.work = self.updated = False
        self.batches = 0
        core.complete()
        return True

    def got(self, batch: Any) -> None:
        """It came."""
        self.batches = 1
        self.core.arrived(FORWARD, batch, True)

    def goes_backward(self) -> int:
        """A backward pass begins; gives the phase it was in, -1 in a thread that is not ours."""
        core = self.core
        if not self.training:
            core.guarded(lambda _: self.begin_training(), None)
        if get_ident() != core.thread:
            return -1
        before = core.phase
        if before != FORWARD or self.fresh:
            core.guarded(self.unusual_backward, before)
        self.backwards += 1
        self.work = True
        core.mark(BACKWARD)
        return before

    def came_back(self, before: int) -> None:
        """It is over."""
        if before >= 0:
            self.core.mark(OPTIMIZER if before == OPTIMIZER else OTHER)

    def optimizer_begins(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if get_ident() == self.core.thread:
            self.core.mark(OPTIMIZER)

    def optimizer_ends(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        core = self.core
        if get_ident() != core.thread:
            return
        if core.watched:
            core.guarded(core.device_ends, 0)
        if self.batches and id(optimizer) == self.primary and not self.updated and not self.inner:
            self.updated = True
            core.mark(BETWEEN)
        else:
            core.guarded(self.optimizer_ended, optimizer)
