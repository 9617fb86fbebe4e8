"""Puts short delays into one place of the loop, as a plan has it, and keeps what came of each block.

A delay is a sleep: it takes time from the loop and a core from nobody. Its real length is what counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import get_ident
from typing import Any

from .. import ring
from ..auto.patch import replace
from ..auto.side_calls import LATER, when_there
from ..core.phases import CHECKPOINT, GRAD_NORM
from ..device.absent import SHARE
from .extra import BEHIND, extra_ns, periods
from .plan import REST, Block, Plan
from .slope import LEAST_BLOCKS, Point, quick_error, slope

NAME = "delays"
"""In the meta of a run: what is known of each place, see `Found.as_meta`."""
KNOWN = 0.03
"""A choice: a slope with this standard error is known to a tenth, and its place left alone."""
EVERY_STEP = 0.1
"""A choice: what marks on a device may cost while it is probed; with less they would pause now and then."""
DIGITS = 4


class Found:
    """What the blocks in one place have shown."""

    def __init__(self) -> None:
        self.long: list[Point] = []
        self.short: list[Point] = []
        self.delays = 0
        self.spent_ns = 0

    def add(self, block: Block, extra: float) -> None:
        steps = block.last - block.first + 1
        delay, longer = block.spent_ns / steps / block.scale_ns, extra / block.scale_ns
        side = self.long if block.is_long else self.short
        side.append((round(delay, DIGITS), round(longer, DIGITS)))

    @property
    def known(self) -> bool:
        if min(len(self.long), len(self.short)) < 2 * LEAST_BLOCKS or slope(self.long, self.short) is None:
            return False
        return quick_error(self.long, self.short) <= KNOWN

    def as_meta(self) -> dict[str, Any]:
        return {
            "long": self.long,
            "short": self.short,
            "delays": self.delays,
            "seconds": round(self.spent_ns / 1e9, 6),
        }


class Delays:
    """The delays of one process. `session` gives the run that is recorded; None: delay nothing now."""

    def __init__(self, session: Callable[[], Any], budget: float) -> None:
        self._session = session
        self._budget = budget
        self._forget(None)

    def _forget(self, path: str | None) -> None:
        """Another run begins in this process."""
        self._path = path
        self._plan = Plan(self._budget)
        self._step = 0
        self._block: Block | None = None
        self._due = False
        """This step is still to be delayed."""
        self._waiting: list[Block] = []
        self._found: dict[str, Found] = {}

    def install(self, torch: Any, after_step: Callable[[Callable[[], None]], None]) -> None:
        """Before the loop's own instrumentation: a delay is then part of the phase it is put into."""
        loader = torch.utils.data.dataloader._BaseDataLoaderIter
        replace(loader, "__next__", self._behind("data"))
        replace(torch.autograd, "backward", self._before("backward"))
        replace(torch, "save", self._before(ring.PHASES[CHECKPOINT]))
        replace(torch.nn.utils, "clip_grad_norm_", self._before(ring.PHASES[GRAD_NORM]))
        for module, owner, names, phase in LATER:
            when_there(module, owner, names, self._before(ring.PHASES[phase]))
        after_step(lambda: self.at("optimizer"))

    def _behind(self, place: str) -> Callable[[Any], Any]:
        def make(original: Any) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                found = original(*args, **kwargs)
                self.at(place)
                return found

            return call

        return make

    def _before(self, place: str) -> Callable[[Any], Any]:
        def make(original: Any) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                self.at(place)
                return original(*args, **kwargs)

            return call

        return make

    def at(self, place: str) -> None:
        """This place of the loop is passed: delay it, if this step is one of those. Once in a step."""
        session = self._session()
        if session is None or session.path is None or get_ident() != session.recorder.thread:
            return
        if session.path != self._path:
            self._forget(session.path)
        if session.recorder.steps + 1 != self._step:
            self._begin_step(session)
        self._plan.passed(place)
        if self._due and self._block is not None and place == self._block.place:
            self._due = False
            self._delay(self._block)

    def _begin_step(self, session: Any) -> None:
        self._step = session.recorder.steps + 1
        session.recorder.device.allow(SHARE if self._plan.done else EVERY_STEP)
        block = self._plan.step(self._step, time.monotonic_ns())
        if block is not None and block is not self._block:
            # The first steps of a block count for neither side: the time for this is taken there.
            self._look_back(session)
            self._waiting.append(block)
        self._block, self._due = block, block is not None

    def _delay(self, block: Block) -> None:
        began = time.monotonic_ns()
        time.sleep(block.delay_ns / 1e9)
        self._plan.delayed(block, time.monotonic_ns() - began)

    def _look_back(self, session: Any, at_the_end: bool = False) -> None:
        """What the blocks that are over have shown; a device tells of its steps some steps later."""
        on_device = str(session.config.get("device") or "cpu") != "cpu"
        late = self._step - REST - (BEHIND if on_device else 0)
        done = [block for block in self._waiting if at_the_end or block.last < late]
        self._waiting = [block for block in self._waiting if block not in done]
        for block in done:
            self._keep(block, periods(block, session.recorder.writer.record, on_device))
        if done:
            session.tell(NAME, {place: found.as_meta() for place, found in self._found.items()})

    def _keep(self, block: Block, seen: dict[int, int]) -> None:
        found = self._found.setdefault(block.place, Found())
        found.delays += block.made
        found.spent_ns += block.spent_ns
        extra = extra_ns(block, seen) if block.made else None
        if extra is not None:
            found.add(block, extra)
        if found.known:
            self._plan.clear.add(block.place)

    def end(self) -> None:
        """The run ends: the last blocks."""
        session = self._session()
        if session is not None and session.path is not None and session.path == self._path:
            self._look_back(session, at_the_end=True)
