"""The outermost modules a script calls: learned in a few early steps, then watched one by one.

To learn them the calls of a few steps are looked at with a profile function, and only outside modules that
are known already: never inside a forward pass, never while torch compiles. A module that was found is watched
through `_compiled_call_impl`, the place torch itself has for another way to call a module: it is in no state
dict, and torch leaves it out of copies and pickles. torch's global module hooks would cost every submodule
some microseconds, and compiled modules complain about them.

Once something is compiled only the module torch made of it is watched: a watched module inside compiled
code would be compiled anew.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from .. import ring
from ..compiler.regions import CompiledRegion, is_compiling
from ..compiler.tracing import Compiling
from ..core.phases import OTHER, TRANSFER

if TYPE_CHECKING:
    from ._recognizer import StepRecognizer

_QUIET_STEPS = 3
"""A choice: after this many steps without a new module, all are known."""
_MOST = 16
"""A choice: scripts that call more modules than this on their own are not watched more closely."""
_PLACE = "_compiled_call_impl"


class Watched:
    """Calls a module as torch would, and says so. Copied or pickled it is nothing."""

    __slots__ = ("_begins", "_ends", "_module", "original")

    def __init__(self, module: Any, begins: Callable[[Any], bool], ends: Callable[[], None]) -> None:
        self._module = weakref.ref(module)
        self.original = vars(module).get(_PLACE)
        """What the module had there itself (`module.compile()`)."""
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
    """Finds them, watches them, lets go of them."""

    def __init__(self, steps: StepRecognizer, torch: Any) -> None:
        self._steps = steps
        self._recorder = steps.recorder
        self._script_module: type = torch.jit.ScriptModule
        self._code = getattr(torch.nn.Module._wrapped_call_impl, "__code__", None)
        self._known: list[weakref.ref[Any]] = []
        self._found: list[weakref.ref[Any]] = []
        """Seen, and not watched yet: the probe must see the model as it is."""
        self._looking = False
        self._region = CompiledRegion()
        self._quiet = self._missed = 0
        self._compiled = False
        self._batch: Any = None
        """Where the last batch was when it came."""
        self.learn()

    # ── learning ─────────────────────────────────────────────────────────────────────────────────

    def learn(self) -> None:
        """Look for modules in the next steps."""
        self._quiet = 0
        self._steps.learning = self._code is not None

    def look(self) -> None:
        """The script's own code runs from here on: see which modules it calls."""
        if not self._steps.learning or self._looking or sys.getprofile() is not None or self._is_sampled():
            return
        self._looking = True
        self._region.begin()
        sys.setprofile(self._event)

    def _is_sampled(self) -> bool:
        """This step has a profile function of its own, or will get one."""
        recorder = self._recorder
        return bool((recorder.scratch[ring.W_FLAGS] | recorder.next_flags) & ring.F_SAMPLED)

    def pause(self) -> None:
        """What follows is a batch being made, or a backward pass."""
        if self._looking:
            self._looking = False
            if getattr(sys.getprofile(), "__self__", None) is self:
                sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, argument: Any) -> None:
        """An outermost module is called: what is inside it does not matter, so stop looking."""
        if self._region.holds(frame, event):
            if is_compiling(frame):
                self.pause()
        elif event == "call" and frame.f_code is self._code:
            self.pause()
            self._note(frame.f_locals.get("self"))

    def _note(self, module: Any) -> None:
        known = any(ref() is module for ref in (*self._known, *self._found))
        if module is not None and not known and len(self._known) + len(self._found) < _MOST:
            self._found.append(weakref.ref(module))
            self._quiet = 0

    def batch_arrived(self, batch: Any) -> None:
        """A batch to train on is here: the model follows."""
        if self._steps.learning:
            self._batch = _device(batch)
            self.look()

    def called(self, module: Any) -> bool:
        """A known one is called. While others are looked for, its end matters."""
        self.pause()
        if self._steps.learning and self._batch is not None:
            first = next(iter(module.parameters()), None)
            if first is not None:
                copied = first.device.type != self._batch.type
                self._steps.arrival = TRANSFER if copied else OTHER
        return bool(self._steps.learning)

    def missed(self) -> None:
        """A backward pass, and no known module was called before it. Look again, but ever more rarely."""
        self._missed += 1
        if not self._missed & (self._missed - 1) and not self._steps.learning:
            self.learn()

    # ── watching ─────────────────────────────────────────────────────────────────────────────────

    def install(self) -> None:
        """An update is done: watch what was found, and see whether there is more to find."""
        if not self._steps.learning:
            return
        for module in _alive(self._found):
            if self._may_be_watched(module):
                vars(module)[_PLACE] = Watched(module, self._steps.call_begins, self._steps.call_ended)
            self._known.append(weakref.ref(module))
        self._found = []
        self._quiet += 1
        if self._quiet >= _QUIET_STEPS:
            self._steps.learning = False

    def _may_be_watched(self, module: Any) -> bool:
        own = vars(module).get(_PLACE)
        if isinstance(module, self._script_module) or isinstance(own, Watched):
            return False
        is_compiled = own is not None or "_orig_mod" in vars(module).get("_modules", {})
        return is_compiled or not self._compiled

    def compiling(self) -> None:
        """Something is to be compiled: no watched module may be in it."""
        self._compiled = True
        self.remove()
        self.learn()

    def remove(self) -> None:
        """Leave every module as it was."""
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
    """Where the first tensor of a batch is; None: no tensor was found."""
    device = getattr(value, "device", None)
    if device is not None or not depth:
        return device
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return next((found for part in parts if (found := _device(part, depth - 1)) is not None), None)
