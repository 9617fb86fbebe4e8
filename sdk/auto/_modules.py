"""The outermost modules a script calls: learned in a few early steps, then watched one by one.

To learn them, a profile function observes the calls of a few steps, but only outside modules already known:
never inside a forward pass, never while torch compiles. A module found is then watched through
`_compiled_call_impl`, torch's own hook for calling a module another way: it is in no state dict, and torch
omits it from copies and pickles. torch's global module hooks would cost every submodule some microseconds,
and compiled modules complain about them.

Once something is compiled, only the module torch made of it is watched: a watched module inside compiled
code would be recompiled.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

from .. import ring
from ..compiler.regions import CompiledRegion, is_compiling
from ..compiler.tracing import Compiling
from ..core.phases import OTHER, TRANSFER
from ._rows import Rows

if TYPE_CHECKING:
    from ._recognizer import StepRecognizer

_QUIET_STEPS = 3
"""Chosen: after this many steps without a new module, all are known."""
_UNNAMED, _LATER_STEPS, _LATER_LOOKS, _LATER_CALLS = 0.1, 64, 2, 20_000
"""Chosen: if this share of the time is between the steps, modules called there may have come later (an
average of the weights that is evaluated). Then we look again, for so many steps, so many times, and each time
at so many calls and returns at most: a loop of many small calls would notice more."""
_MOST = 16
"""Chosen: if a script itself calls more modules than this, the rest are not watched."""
_PLACE = "_compiled_call_impl"


class Watched:
    """Calls a module as torch would, and reports it. A copy or pickle of this is None."""

    __slots__ = ("_begins", "_ends", "_module", "original")

    def __init__(self, module: Any, begins: Callable[[Any], bool], ends: Callable[[], None]) -> None:
        self._module = weakref.ref(module)
        self.original = vars(module).get(_PLACE)
        """What the module itself had there (`module.compile()`)."""
        self._begins = begins
        self._ends = ends

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module: Any = self._module()
        call = self.original or module._call_impl
        if Compiling.check() or not self._begins(module):
            return call(*args, **kwargs)
        try:
            return call(*args, **kwargs)
        finally:
            self._ends()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()


class OutermostModules:
    """Finds them, watches them, releases them."""

    def __init__(self, steps: StepRecognizer, torch: Any) -> None:
        self._steps = steps
        self._recorder = steps.recorder
        self._script_module: type = torch.jit.ScriptModule
        self._code = getattr(torch.nn.Module._wrapped_call_impl, "__code__", None)
        self._known: list[weakref.ref[Any]] = []
        self._found: list[weakref.ref[Any]] = []
        """Seen but not watched yet: the probe must see the model unchanged."""
        self._looking = False
        self._region = CompiledRegion()
        self._quiet = self._missed = self._later = 0
        self._quiet_steps, self._left = _QUIET_STEPS, 0
        """How long to look; and in a later look, the calls and returns still to be seen."""
        self._spent = 0, 0
        """Nanoseconds between the steps, and in all, when last asked."""
        self._compiled = False
        self._batch: Any = None
        """The device of the last batch on arrival."""
        self._rows = Rows()
        self.learn()

    # ── learning ─────────────────────────────────────────────────────────────────────────────────

    def learn(self) -> None:
        """Look for modules in the next steps."""
        self._quiet, self._quiet_steps, self._left = 0, _QUIET_STEPS, 0
        self._steps.learning = self._code is not None

    def look_again(self) -> None:
        """About once a second: look for more where much of the time since then has no name."""
        before, self._spent = self._spent, self._recorder.spent_between()
        unnamed, whole = (max(0, now - then) for now, then in zip(self._spent, before, strict=True))
        if self._steps.learning or self._later >= _LATER_LOOKS or unnamed <= _UNNAMED * whole:
            return
        self.learn()
        self._later += 1
        self._quiet_steps, self._left = _LATER_STEPS, _LATER_CALLS

    def look(self) -> None:
        """From here the script's own code runs: see which modules it calls."""
        if not self._steps.learning or self._looking or sys.getprofile() is not None or self._is_sampled():
            return
        self._looking = True
        self._region.begin()
        sys.setprofile(self._event)

    def _is_sampled(self) -> bool:
        """Whether this step has, or will get, another profile function."""
        recorder = self._recorder
        return bool((recorder.scratch[ring.W_FLAGS] | recorder.next_flags) & ring.F_SAMPLED)

    def pause(self) -> None:
        """A batch is being loaded, or a backward pass follows: stop looking."""
        if self._looking:
            self._looking = False
            self._leave()

    def _leave(self) -> None:
        """The training may have a profile function of its own by now."""
        if getattr(sys.getprofile(), "__self__", None) is self:
            sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, argument: Any) -> None:
        """If an outermost module is called, stop looking: what happens inside it does not matter."""
        if not self._looking:
            self._leave()  # somebody who had kept it has put it back
            return
        if self._left:
            self._left -= 1
            if not self._left:
                self.pause()
                self._steps.learning = False
        if self._region.holds(frame, event):
            if is_compiling(frame):
                self.pause()
        elif event == "call" and frame.f_code is self._code:
            self.pause()
            self._note(frame.f_locals)

    def _note(self, call: Mapping[str, Any]) -> None:
        """`call`: the local variables of torch's own `Module.__call__`."""
        module = call.get("self")
        if getattr(module, "training", False) and self._steps.grad_enabled():
            self._steps.guarded(self._rows.passed, module, (*call["args"], *call["kwargs"].values()))
        known = any(ref() is module for ref in (*self._known, *self._found))
        if module is not None and not known and len(self._known) + len(self._found) < _MOST:
            self._found.append(weakref.ref(module))
            self._quiet = 0

    def batch_arrived(self, batch: Any) -> None:
        """A training batch has arrived: the model follows."""
        if self._steps.learning:
            self._batch = _device(batch)
            self.look()

    def called(self, module: Any) -> bool:
        """A known module is called. Returns whether its end matters: yes while looking for others."""
        self.pause()
        if self._steps.grad_enabled():
            self._rows.called(module)
        if self._steps.learning and self._batch is not None:
            first = next(iter(module.parameters()), None)
            if first is not None:
                copied = first.device.type != self._batch.type
                self._steps.arrival = TRANSFER if copied else OTHER
        return bool(self._steps.learning)

    def missed(self) -> None:
        """A backward pass without a call of a known module before it. Look again, but ever more rarely."""
        self._missed += 1
        if not self._missed & (self._missed - 1) and not self._steps.learning:
            self.learn()

    # ── watching ─────────────────────────────────────────────────────────────────────────────────

    def install(self) -> None:
        """An update is done: watch the modules found, and decide whether to look for more."""
        if not self._steps.learning:
            return
        for module in _alive(self._found):
            if self._may_be_watched(module):
                vars(module)[_PLACE] = Watched(module, self._steps.call_begins, self._steps.call_ended)
            self._known.append(weakref.ref(module))
        self._found = []
        self._rows.updated()
        self._quiet += 1
        if self._quiet >= self._quiet_steps:
            self._steps.learning = False
            if not self._later:
                self._steps.session.know_rows(self._rows.known)

    def _may_be_watched(self, module: Any) -> bool:
        own = vars(module).get(_PLACE)
        if isinstance(module, self._script_module) or isinstance(own, Watched):
            return False
        is_compiled = own is not None or "_orig_mod" in vars(module).get("_modules", {})
        return is_compiled or not self._compiled

    def compiling(self) -> None:
        """Something is about to be compiled: it must contain no watched module."""
        self._compiled = True
        self.remove()
        self.learn()

    def remove(self) -> None:
        """Restore every module."""
        self.pause()
        for module in _alive(self._known):
            watched = vars(module).get(_PLACE)
            if isinstance(watched, Watched):
                if watched.original is None:
                    del vars(module)[_PLACE]
                else:
                    vars(module)[_PLACE] = watched.original
        self._known, self._found = [], []
        self._steps.learning = False


def _alive(modules: list[weakref.ref[Any]]) -> list[Any]:
    return [module for ref in modules if (module := ref()) is not None]


def _device(value: Any, depth: int = 2) -> Any:
    """The device of the first tensor in a batch; None: no tensor found."""
    device = getattr(value, "device", None)
    if device is not None or not depth:
        return device
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return next((found for part in parts if (found := _device(part, depth - 1)) is not None), None)
