"""Which lines of the user's code take the time, from a short-lived sampling thread.

Sampling another thread's stack changes neither what the code computes nor what dynamo sees. During sampling,
samples are only stored; they are evaluated afterwards. Each sample also says how long the sampled thread ran,
which distinguishes working from waiting.
"""

from __future__ import annotations

import _thread
import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any

from ..structure.files import is_user_file, library_module
from ..structure.places import Place
from ._hot_lines import CHECKPOINT, MODULE, HotLines, Sample
from ._samplers import BestSampler, Lines, RawSample, Sampler, Stretch, Subject
from ._stacks import Frame
from ._thread_clock import ThreadClock

ENOUGH = 120
"""Chosen: samples in one window. A line with a tenth of the time is then seen about twelve times."""
MAX_WINDOWS = 4
"""Chosen: full windows after which a profile gets no more samples."""
LONGEST_S = 3.0
"""Chosen: most seconds a window lasts, however slow the steps."""
_JOIN_S = 0.5
"""Chosen: seconds to wait for the sampling thread, which sleeps at most a few milliseconds."""
AUTOGRAD = os.path.join("torch", "autograd", "__init__.py")
FRAMEWORKS = (
    "transformers",
    "lightning",
    "pytorch_lightning",
    "accelerate",
    "fastai",
    "ultralytics",
    "skorch",
)
"""Packages that run the training loop themselves: what to change is one of their settings."""


class Hotspots:
    """Samples one thread for a while and sums up. `subject.phase` is the number of its phase; `name` names
    it."""

    def __init__(self, thread: int, subject: Subject, name: Callable[[int], str]) -> None:
        self._thread = thread
        self._subject = subject
        self._name = name
        self._sampler: Sampler | None = None
        self._ended: Any = None
        """A lock that the sampling thread holds while it runs."""
        self._seen: list[list[RawSample]] = []
        """Samples by step, until `evaluate` sums them."""
        self._code = Lines()
        self._lines = HotLines()
        self._forgotten = 0

    @property
    def samples(self) -> int:
        """Samples since the start or since `forget`."""
        return (self._sampler.taken if self._sampler else 0) - self._forgotten

    @property
    def spent_ns(self) -> int:
        """What sampling has cost so far: in the sampled thread and in its own."""
        return self._sampler.spent_ns if self._sampler else 0

    @property
    def running(self) -> bool:
        return self._ended is not None and bool(self._ended.locked())

    def watch(self, thread: int) -> None:
        """Sample this thread from the next window on."""
        if thread != self._thread:
            self._thread, self._sampler, self._forgotten = thread, None, 0

    def start(self, every_s: float) -> None:
        if self.running or self.samples >= ENOUGH * MAX_WINDOWS:
            return
        # Not a `threading.Thread`: freeing one runs Python code, and a Ctrl-C at that moment would be lost.
        ended = _thread.allocate_lock()
        ended.acquire()
        _thread.start_new_thread(self._run, (every_s, ended))
        self._ended = ended

    def _run(self, every_s: float, ended: Any) -> None:
        try:
            self._sample(every_s)
        except Exception:  # noqa: BLE001 — at interpreter exit anything may be gone; losing a sample is harmless
            return
        finally:
            ended.release()

    def _sample(self, every_s: float) -> None:
        clock = ThreadClock(self._thread)
        if self._sampler is None:
            self._sampler = BestSampler(self._subject, self._thread)
        is_main = self._thread == threading.main_thread().ident
        self._sampler.run(int(every_s * 1e9), int(LONGEST_S * 1e9), ENOUGH, is_main, clock.fd)
        clock.close()

    def step(self) -> None:
        """A step (a batch) has ended: its samples count. Those after the last step do not."""
        if self._sampler is not None and (taken := self._sampler.take()):
            self._seen.append(taken)

    def stop(self) -> None:
        """End the window and wait for the thread; it sleeps at most one interval."""
        if self._sampler is not None:
            self._sampler.stop()
        if self._ended is not None and self._ended.acquire(timeout=_JOIN_S):
            self._ended.release()

    def forget(self) -> None:
        """Start over: the run may have changed since."""
        self._lines.forget()
        self._seen = []
        self._forgotten += self.samples

    def evaluate(self, relabelled: Iterable[Stretch] = ()) -> HotLines:
        """The lines, with everything seen so far summed; `relabelled`: where a phase was known only later."""
        seen, self._seen = self._seen, []
        stretches = {one.began: one for one in relabelled}  # of several about one, the last counts
        starts = sorted(stretches)
        for step in seen:
            known = [_relabelled(raw, starts, stretches) for raw in step]
            found = [(raw, *self._code.read(*raw[-2:])) for raw in known]
            self._lines.count([self._told(raw, frames, sure) for raw, frames, sure in found if frames])
        return self._lines

    def _told(self, raw: RawSample, frames: list[Frame], sure: bool = True) -> Sample:
        phase, ns, cpu, queued = raw[:4]
        name = self._name(phase)
        places, entered = _user_frames(frames)
        innermost = frames[0].name if entered is not None else ""
        recomputed = any(frame.file.endswith(CHECKPOINT) for frame in frames)
        framework = _framework(frames) if name == "backward" else ""
        called = f"{library_module(entered.file)}.{entered.name}" if entered is not None else ""
        spent = max(0, ns - queued)  # others had the core meanwhile: not this line's work
        return Sample(name, places, spent, cpu, innermost, called, recomputed, framework, not sure)


def _relabelled(raw: RawSample, starts: list[int], stretches: dict[int, Stretch]) -> RawSample:
    """The sample with the phase its time counts as."""
    at = raw[4]
    index = bisect_right(starts, at) - 1
    stretch = stretches[starts[index]] if index >= 0 else None
    return (stretch.phase, *raw[1:]) if stretch is not None and at < stretch.ended else raw


def _user_frames(frames: list[Frame]) -> tuple[tuple[Place, ...], Frame | None]:
    """The frames of user code, innermost first (else the leaf); the library frame called from the first."""
    users: list[Place] = []
    entered: Frame | None = None
    below: Frame | None = None
    module = False
    for frame in frames:
        if is_user_file(frame.file):
            users.append(Place(*frame, module))
            entered, module = (below if len(users) == 1 else entered), False
        else:
            module = module or frame.file.endswith(MODULE)
        below = frame
    return tuple(users) or (Place(*frames[0]),), entered


def _framework(frames: list[Frame]) -> str:
    """The framework whose loop asked for the backward pass; not one whose model is recomputed within it."""
    asked = [at for at, frame in enumerate(frames) if frame.file.endswith(AUTOGRAD)]
    packages = {library_module(frame.file).partition(".")[0] for frame in frames[max(asked, default=0) :]}
    return next((name for name in FRAMEWORKS if name in packages), "")
